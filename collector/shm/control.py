"""The control page: the level at which the hooks work, and a reader's claim on a higher one."""

from __future__ import annotations

import errno
import os
import struct
import threading
import time

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.linux.target import user_name
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import Control
from locktop.collector.shm.segment import SharedMemory

LEVEL_NAMES = {
    lib.LT_LEVEL_DORMANT: "dormant",
    lib.LT_LEVEL_COUNTING: "counting",
    lib.LT_LEVEL_CONTENDED: "contended",
    lib.LT_LEVEL_BLOCKS: "blocks",
    lib.LT_LEVEL_ALL: "all",
}
_LEVEL_MASK = 0xFF
_RENEW_EVERY_S = 1.0
#: A claim as young as this has not lapsed: who took it away did so on purpose.
_SURELY_VALID_S = lib.LT_CLAIM_SECONDS - 1.0


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

    def read(self) -> Control:
        """Return what is there now; raises OSError when the file ends before."""
        data = os.pread(self._fd, layout.CONTROL.size, lib.LT_CONTROL_OFFSET)
        if len(data) != layout.CONTROL.size:
            raise OSError(errno.EIO, "it was cut off")
        return layout.CONTROL.at(data)

    def put(self, field: str, value: int) -> None:
        """Write one field of struct lt_control."""
        at = lib.LT_CONTROL_OFFSET + native.offset_of("struct lt_control", field)
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
        raise LocktopError(f"cannot set the level: {_why_not_writable(memory, error)}") from error
    try:
        control = page.read()
        page.put("claim_pid", 0)  # a claim of a dormant process would raise it again
        page.put("base_level", level)
        page.put("mode", _mode(control, level))  # last: now the hooks see it
    except OSError as error:
        raise LocktopError(f"cannot set the level: {memory.path}: {error.strerror}") from error
    finally:
        page.close()
    return level_name(control)


def _why_not_writable(memory: SharedMemory, error: OSError) -> str:
    if error.errno not in (errno.EACCES, errno.EPERM):
        return f"{memory.path}: {error.strerror}"
    owner = user_name(os.fstat(memory.fd).st_uid)
    return f"{memory.path} belongs to user {owner}; run locktop as that user or as root"


class Claim:
    """Raises a dormant process to "contended" and keeps it there until ``close()``, however seldom
    it is looked at. Nothing is lowered on the way out (another reader may still look): a claim that
    nobody renews lapses by itself. Who sets a level meanwhile ends it: that level is meant."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self.note = ""
        self._clock = clock
        self._renewed_at = float("-inf")  # time.monotonic()
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None
        if memory.control().base_level != lib.LT_LEVEL_DORMANT:
            return
        try:
            self._page = ControlPage(memory)
        except OSError as error:
            why = _why_not_writable(memory, error)
            self.note = f"the process is dormant and cannot be woken: {why}"
            return
        self._renew()
        self._keeper = threading.Thread(target=self._keep, name="claim", daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        try:
            while not self._closed.wait(_RENEW_EVERY_S) and self._renew():
                pass
        except OSError:
            pass  # the file was cut off: the next look says so
        finally:
            self._page.close()

    def _renew(self) -> bool:
        """Say that somebody still looks; False when somebody else has set a level since."""
        control, now = self._page.read(), time.monotonic()
        if not control.claim_pid and now - self._renewed_at < _SURELY_VALID_S:
            return False
        self._renewed_at = now
        wanted = lib.LT_LEVEL_CONTENDED
        self._page.put("claim_ticks", self._clock.now())
        if not control.claim_pid:
            self._page.put("claim_level", wanted)
            self._page.put("claim_pid", os.getpid())
        if control.mode & _LEVEL_MASK < wanted:
            self._page.put("mode", _mode(control, wanted))  # last: now the hooks see it
        return True

    def close(self) -> None:
        """Let the claim lapse."""
        self._closed.set()
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None
