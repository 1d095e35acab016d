"""The claim on the control page: asks a dormant process to count while somebody looks."""

from __future__ import annotations

import os
import struct

from locktop.collector import abi
from locktop.collector.abi import Control, lib
from locktop.collector.clock import Clock
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


class Claim:
    """Raises a dormant process to "contended" and keeps it there; it lapses by itself when nobody
    renews it, so nothing is lowered on the way out (another reader may still look)."""

    def __init__(self, memory: SharedMemory) -> None:
        self._fd = -1
        self.note = ""
        if memory.control().base_level != lib.LT_LEVEL_DORMANT:
            return
        try:
            # Through the descriptor that was checked: the name may lead elsewhere by now.
            self._fd = os.open(f"/proc/self/fd/{memory.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            self.note = (
                "the process is dormant and cannot be woken:"
                f" {memory.path} is not writable ({error.strerror})"
            )

    def renew(self, control: Control, clock: Clock) -> None:
        """Say that somebody still looks."""
        if self._fd < 0:
            return
        wanted = lib.LT_LEVEL_CONTENDED
        self._put("claim_ticks", "=Q", clock.now())
        self._put("claim_level", "=I", wanted)
        self._put("claim_pid", "=I", os.getpid())
        if control.mode & _LEVEL_MASK < wanted:
            epoch = ((control.mode >> 8) + 1) & 0xFFFFFF
            self._put("mode", "=I", epoch << 8 | wanted)  # last: now the hooks see it

    def _put(self, field: str, code: str, value: int) -> None:
        at = lib.LT_CONTROL_OFFSET + abi.offset_of("struct lt_control", field)
        os.pwrite(self._fd, struct.pack(code, value), at)

    def close(self) -> None:
        """Let the claim lapse."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
