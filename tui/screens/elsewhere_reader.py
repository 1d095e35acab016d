"""Reads in which other processes the waits of the watched process go on, beside the keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textual.message import Message

from locktop.tui.extension import steps_elsewhere
from locktop.tui.extension_parts import StepElsewhere
from locktop.tui.feed import SnapshotFeed
from locktop.tui.widgets.list_screen import ListScreen

#: Seconds between two readings, and as a multiple of the time that a reading took. A reading goes
#: through the open files of all processes: 0.01 s of CPU with 140 of them.
_PAUSE_S, _PAUSE_RATIO = 2.0, 20


class ProcessChosen(Message):
    """The user wants to watch another process."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid


class ElsewhereReader:
    """Has the steps by the threads of the process whose waits lead to another process."""

    def __init__(self, screen: ListScreen, feed: SnapshotFeed, is_live: Callable[[], bool]) -> None:
        """Args:
        screen: has the worker.
        feed: tells whether the process runs on this machine.
        is_live: whether the screen shows the process as it is now.
        """
        self._screen = screen
        self._feed = feed
        self._is_live = is_live
        self._steps: Mapping[int, Sequence[StepElsewhere]] = {}
        self._pid = 0
        self._next_s = 0.0  # no reading before this time.monotonic()
        self._is_reading = False

    def steps(self, pid: int, tids: Sequence[int]) -> Mapping[int, Sequence[StepElsewhere]]:
        """Return the steps as last read, and read them again if that is due.

        The tree asks only while it is visible, so nothing is read for a hidden one.

        Args:
            pid: the watched process.
            tids: its threads, as it has them itself; 0 for its first thread.
        """
        if self._feed.source is None or not self._is_live():
            return {}
        if pid != self._pid:
            self._steps, self._pid = {}, pid
        if not self._is_reading and time.monotonic() >= self._next_s:
            self._is_reading = True
            self._screen.start(partial(self._read, pid, tuple(tids)), "elsewhere")
        return self._steps

    async def _read(self, pid: int, tids: Sequence[int]) -> None:
        begin = time.monotonic()
        try:
            self._steps = await asyncio.to_thread(steps_elsewhere, pid, tids)
        finally:
            self._is_reading = False
            now = time.monotonic()
            self._next_s = now + max(_PAUSE_S, _PAUSE_RATIO * (now - begin))
