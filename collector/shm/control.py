"""The control page: the level of the hooks, and a reader's claim on a dormant process."""

from __future__ import annotations

import errno
import os
import struct
import threading

from locktop.collector import native
from locktop.collector.errors import LocktopError, reason_of
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
_WIDE = ("claim_ticks", "holds_until")
#: Seconds for which one request for records of holds lasts.
HOLDS_WANTED_S = 5.0
RENEW_EVERY_S = 1.0
#: A younger claim has not lapsed. If such a claim is gone, another reader removed it on purpose.
SURELY_VALID_S = lib.LT_CLAIM_SECONDS - 1.0


def level_name(control: Control) -> str:
    """Return the name of the level at which the hooks work."""
    return LEVEL_NAMES.get(control.mode & _LEVEL_MASK, "dormant")


def counts_from_the_start(control: Control) -> bool:
    """Tell whether the hooks have counted since the program began.

    A new epoch begins where the level becomes dormant or stops being dormant. The first epoch is 1.
    """
    levels = (control.base_level, control.mode & _LEVEL_MASK)
    return lib.LT_LEVEL_DORMANT not in levels and control.mode >> 8 <= 1


def mode_of(control: Control, level: int) -> int:
    """Return the mode for a level.

    Dormant hooks may miss releases. A new epoch therefore begins where the dormant level begins or
    ends, and each thread forgets its held locks.
    """
    former = control.mode & _LEVEL_MASK
    passes_dormant = former != level and lib.LT_LEVEL_DORMANT in (former, level)
    epoch = ((control.mode >> 8) + passes_dormant) & 0xFFFFFF
    return epoch << 8 | level


class ControlPage:
    """The one page of the file that a reader may write. Raises OSError if it is not writable."""

    def __init__(self, memory: SharedMemory) -> None:
        # By the descriptor that was checked: the name may belong to another file by now.
        self._fd = os.open(f"/proc/self/fd/{memory.fd}", os.O_RDWR | os.O_CLOEXEC)

    def read(self) -> Control:
        """Return the present content. Raises OSError when the file ends before."""
        data = os.pread(self._fd, layout.CONTROL.size, lib.LT_CONTROL_OFFSET)
        if len(data) != layout.CONTROL.size:
            raise OSError(errno.EIO, "the file was cut off")
        return layout.CONTROL.unpack(data)

    def put(self, field: str, value: int) -> None:
        """Write one field of struct lt_control."""
        offset = lib.LT_CONTROL_OFFSET + native.offset_of("struct lt_control", field)
        code = "=Q" if field in _WIDE else "=I"
        os.pwrite(self._fd, struct.pack(code, value), offset)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


def set_level(memory: SharedMemory, name: str) -> str:
    """Set the level at which the hooks work. The level stays when no reader is left.

    Args:
        memory: the file of the process.
        name: one of the values of LEVEL_NAMES.

    Returns: the name of the former level.
    Raises: LocktopError when the file is not writable.
    """
    level = {name: number for number, name in LEVEL_NAMES.items()}[name]
    try:
        page = ControlPage(memory)
    except OSError as error:
        raise LocktopError(f"cannot set the level: {write_refusal(memory, error)}") from error
    try:
        control = page.read()
        page.put("claim_pid", 0)  # a claim on a dormant process would raise the level again
        page.put("base_level", level)
        page.put("mode", mode_of(control, level))  # last: the hooks read the mode
    except OSError as error:
        raise LocktopError(f"cannot set the level: {memory.path}: {reason_of(error)}") from error
    finally:
        page.close()
    return level_name(control)


def write_refusal(memory: SharedMemory, error: OSError) -> str:
    """Return why the page could not be opened, as a part of a message."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return f"{memory.path}: {reason_of(error)}"
    owner = user_name(os.fstat(memory.fd).st_uid)
    return f"{memory.path} belongs to user {owner}; run locktop as that user or as root"


def claim_age_s(control: Control, clock: Clock) -> float:
    """Return the seconds since a reader last renewed its claim."""
    return clock.seconds(clock.now() - control.claim_ticks)


class Claim:
    """Keeps a dormant process at the level "contended" until ``close()``.

    A thread renews the claim, however rare the scans are. ``close()`` does not lower the level,
    because another reader may still scan. A claim that no reader renews lapses by itself. If a user
    sets a level meanwhile, the claim ends and the level of the user stays.

    A claim of another reader on a higher level stays as it is: only that reader renews it.
    ``note`` says why the level could not be raised; "" if that was not so.
    """

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self.note = ""
        self._clock = clock
        self._is_first = True
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None
        if memory.control().base_level != lib.LT_LEVEL_DORMANT:
            return
        try:
            self._page = ControlPage(memory)
        except OSError as error:
            reason = write_refusal(memory, error)
            self.note = f"the process is dormant and cannot be woken: {reason}"
            return
        self._renew()
        self._keeper = threading.Thread(target=self._keep, name="claim", daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        try:
            while not self._closed.wait(RENEW_EVERY_S) and self._renew():
                pass
        except OSError:
            pass  # the file was cut off: the next scan reports that
        finally:
            self._page.close()

    def _renew(self) -> bool:
        """Renew the claim. Return False if another reader has set a level since."""
        control, wanted = self._page.read(), lib.LT_LEVEL_CONTENDED
        is_removed = not control.claim_pid and claim_age_s(control, self._clock) < SURELY_VALID_S
        if is_removed and not self._is_first:
            return False
        self._is_first = False
        if control.claim_pid and control.claim_level > wanted:
            return True
        self._page.put("claim_ticks", self._clock.now())
        if not control.claim_pid:
            self._page.put("claim_level", wanted)
            self._page.put("claim_pid", os.getpid())
        if control.mode & _LEVEL_MASK < wanted:
            self._page.put("mode", mode_of(control, wanted))  # last: the hooks read the mode
        return True

    def close(self) -> None:
        """Let the claim lapse."""
        self._closed.set()
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None


class WantedHolds:
    """Asks the library for records of holds for which a thread waited, at level "contended" too.

    The level stays as it is. The library writes such a record only if it has timed the hold anyway.
    A request lapses by itself.
    """

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._clock = clock
        self.note = ""
        self._page: ControlPage | None = None
        try:
            self._page = ControlPage(memory)
        except OSError as error:
            self.note = (
                f"holds that began without a wait are known in part: {write_refusal(memory, error)}"
            )

    def renew(self) -> None:
        """Make the request last for some more seconds."""
        if self._page is None:
            return
        until = self._clock.now() + self._clock.ticks(HOLDS_WANTED_S)
        try:
            # Another reader may want the records for longer.
            if self._page.read().holds_until < until:
                self._page.put("holds_until", until)
        except OSError:
            self.close()  # the file was cut off: the next scan reports that

    def close(self) -> None:
        """Let the request lapse."""
        if self._page is not None:
            self._page.close()
            self._page = None
