"""The control page: the level at which the hooks work, and a reader's claim on a higher one."""

from __future__ import annotations

import os
import struct

from locktop.collector import abi
from locktop.collector.abi import Control, lib
from locktop.collector.clock import Clock
from locktop.collector.errors import LocktopError
from locktop.collector.shm import SharedMemory

LEVEL_NAMES = {
    lib.LT_LEVEL_DORMANT: "dormant",
    lib.LT_LEVEL_COUNTING: "counting",
    lib.LT_LEVEL_CONTENDED: "contended",
    lib.LT_LEVEL_BLOCKS: "blocks",
    lib.LT_LEVEL_ALL: "all",
}
_LEVEL_MASK = 0xFF


def level_name(control: Control) -> str:
    """Return the word for the level that the hooks work at."""
    return LEVEL_NAMES.get(control.mode & _LEVEL_MASK, "dormant")


def counts_from_the_start(control: Control) -> bool:
    """Tell whether the hooks have counted since the program began: each change of the level begins
    a new epoch, and the first one is 1."""
    levels = (control.base_level, control.mode & _LEVEL_MASK)
    return lib.LT_LEVEL_DORMANT not in levels and control.mode >> 8 <= 1


def _mode(control: Control, level: int) -> int:
    """The mode for a level. While the hooks were dormant they may have missed releases, so a new
    epoch begins where that begins or ends: each thread forgets what it held."""
    was = control.mode & _LEVEL_MASK
    passes_dormant = was != level and lib.LT_LEVEL_DORMANT in (was, level)
    epoch = ((control.mode >> 8) + passes_dormant) & 0xFFFFFF
    return epoch << 8 | level


class ControlPage:
    """The one page of the file that a reader may write. Raises OSError when it is not writable."""

    def __init__(self, memory: SharedMemory) -> None:
        # Through the descriptor that was checked: the name may lead elsewhere by now.
        self._fd = os.open(f"/proc/self/fd/{memory.fd}", os.O_RDWR | os.O_CLOEXEC)

    def put(self, field: str, value: int) -> None:
        """Write one field of struct lt_control."""
        at = lib.LT_CONTROL_OFFSET + abi.offset_of("struct lt_control", field)
        code = "=Q" if field == "claim_ticks" else "=I"
        os.pwrite(self._fd, struct.pack(code, value), at)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


def set_level(memory: SharedMemory, name: str) -> str:
    """Set the level at which the hooks work, from now on and also when nobody looks.

    ``name`` is one of LEVEL_NAMES' values. Returns the name of the level before. Raises
    LocktopError when the file is not writable.
    """
    level = {name: number for number, name in LEVEL_NAMES.items()}[name]
    try:
        page = ControlPage(memory)
    except OSError as error:
        raise LocktopError(f"cannot set the level: {memory.path}: {error.strerror}") from error
    try:
        control = memory.control()
        page.put("claim_pid", 0)  # a claim of a dormant process would raise it again
        page.put("base_level", level)
        page.put("mode", _mode(control, level))  # last: now the hooks see it
    finally:
        page.close()
    return level_name(control)


class Claim:
    """Raises a dormant process to "contended" and keeps it there; it lapses by itself when nobody
    renews it, so nothing is lowered on the way out (another reader may still look)."""

    def __init__(self, memory: SharedMemory) -> None:
        self._page: ControlPage | None = None
        self.note = ""
        if memory.control().base_level != lib.LT_LEVEL_DORMANT:
            return
        try:
            self._page = ControlPage(memory)
        except OSError as error:
            self.note = (
                "the process is dormant and cannot be woken:"
                f" {memory.path} is not writable ({error.strerror})"
            )

    def renew(self, control: Control, clock: Clock) -> None:
        """Say that somebody still looks."""
        if self._page is None:
            return
        wanted = lib.LT_LEVEL_CONTENDED
        self._page.put("claim_ticks", clock.now())
        self._page.put("claim_level", wanted)
        self._page.put("claim_pid", os.getpid())
        if control.mode & _LEVEL_MASK < wanted:
            self._page.put("mode", _mode(control, wanted))  # last: now the hooks see it

    def close(self) -> None:
        """Let the claim lapse."""
        if self._page is not None:
            self._page.close()
            self._page = None
