"""A claim on the level "all", by the one reader that records each hold of a process."""

from __future__ import annotations

import contextlib
import os
import threading

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.native import lib
from locktop.collector.shm import control
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.control import ControlPage
from locktop.collector.shm.layout import Control
from locktop.collector.shm.segment import SharedMemory

_ALL: int = lib.LT_LEVEL_ALL


class RecordingClaim:
    """Raises the level to "all" from ``take()`` to ``put_back()``; a thread renews the claim.

    At most one such claim exists. A claim on a lower level comes back with
    ``put_back()``. If a user sets a level meanwhile, the claim ends, and the level of the user
    stays. Without this reader the claim lapses.

    A process that a user has set to the level "all" needs no claim.
    """

    def __init__(self, memory: SharedMemory, clock: Clock, pid: int) -> None:
        """``memory`` and ``clock``: of the process ``pid``."""
        self._memory, self._clock, self._pid = memory, clock, pid
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="recording claim", daemon=True)
        self._page: ControlPage | None = None
        self._former = (0, 0)  # pid and level of the claim before; a pid of 0: none

    def level(self) -> str:
        """Return the name of the level now."""
        return control.level_name(self._memory.control())

    def take(self) -> None:
        """Raise the level. ``put_back()`` is right even if this was interrupted.

        Raises:
            LocktopError: the level cannot be set, or another reader has such a claim.
        """
        check_free(self._memory, self._clock, self._pid)
        if self._memory.control().base_level >= _ALL:
            return
        try:
            self._page = page = ControlPage(self._memory)
        except OSError as error:
            reason = control.write_refusal(self._memory, error)
            raise LocktopError(f"cannot set the level: {reason}") from error
        try:
            now = page.read()
            if _is_young(now, self._clock):
                self._former = now.claim_pid, now.claim_level
            page.put("claim_ticks", self._clock.now())  # first: an old claim lapses
            page.put("claim_level", _ALL)
            page.put("claim_pid", os.getpid())
            page.put("mode", control.mode_of(now, _ALL))  # last: the hooks read the mode
        except OSError as error:
            path = self._memory.path
            raise LocktopError(f"cannot set the level: {path}: {reason_of(error)}") from error
        self._keeper.start()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):  # the file was cut off: the next check() reports that
            while not self._closed.wait(control.RENEW_EVERY_S) and self._renew():
                pass

    def _renew(self) -> bool:
        """Renew the claim. Return False if it has ended."""
        assert self._page is not None
        if not _is_ours(self._page.read()):
            return False
        self._page.put("claim_ticks", self._clock.now())
        return True

    def check(self) -> None:
        """Raise LocktopError if the process does not record all now, or soon will not."""
        now = self._memory.control()
        level = control.level_name(now)
        if self._page is not None and _records_all(now) and not _is_ours(now):
            raise _another(now, self._pid)
        is_kept = self._page is None or now.base_level >= _ALL or _is_ours(now)
        if level != control.LEVEL_NAMES[_ALL] or not is_kept:
            raise LocktopError(
                f"the level of process {self._pid} was changed meanwhile; it is {level} now: run"
                " the command again"
            )

    def put_back(self) -> None:
        """End the claim, and set the level before at once, unless the claim has ended before."""
        if self._page is None:
            return
        self._closed.set()
        if self._keeper.is_alive():
            self._keeper.join()
        with contextlib.suppress(OSError):  # the file was cut off: the program has ended
            now = self._page.read()
            if _is_ours(now):
                self._end(self._page, now.base_level)
        self._page.close()
        self._page = None

    def _end(self, page: ControlPage, base: int) -> None:
        pid, level = self._former
        if pid:  # lapses if that reader has ended meanwhile
            page.put("claim_level", level)
        else:
            page.put("claim_ticks", 0)  # a reader may claim a dormant process from now on
        page.put("claim_pid", pid)
        page.put("mode", control.mode_of(page.read(), level if pid else base))
        now = page.read()
        if now.base_level != base:  # a user set a level meanwhile
            page.put("claim_pid", 0)
            page.put("mode", control.mode_of(now, now.base_level))


def check_free(memory: SharedMemory, clock: Clock, pid: int) -> None:
    """Raise LocktopError if another reader records all holds of a process."""
    now = memory.control()
    if _records_all(now) and _is_young(now, clock):
        raise _another(now, pid)


def _records_all(now: Control) -> bool:
    return now.claim_pid != 0 and now.claim_level == _ALL


def _is_ours(now: Control) -> bool:
    return now.claim_pid == os.getpid() and now.claim_level == _ALL


def _is_young(now: Control, clock: Clock) -> bool:
    """Tell whether there is a claim that has not lapsed."""
    return now.claim_pid != 0 and control.claim_age_s(now, clock) < lib.LT_CLAIM_SECONDS


def _another(now: Control, pid: int) -> LocktopError:
    return LocktopError(
        f"another locktop (pid {now.claim_pid}) records all holds of process {pid}; wait for its"
        " end"
    )
