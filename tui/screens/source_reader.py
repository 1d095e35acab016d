"""Reads the source files of visible stacks beside the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from locktop.collector.model import Process
from locktop.collector.render.words.source_lines import SourceLines
from locktop.tui.widgets.list_screen import ListScreen


class SourceReader:
    """Has the known source lines, and reads wanted files in another thread."""

    def __init__(self, screen: ListScreen, draw: Callable[[], None]) -> None:
        """Args:
        screen: has the worker.
        draw: draws what has source lines, after a file was read.
        """
        self._screen = screen
        self._draw = draw
        self._lines = SourceLines()
        self._is_reading = False
        self._process: Process | None = None

    def follow(self, process: Process | None) -> None:
        """Read the files of this process; None: of a process that is not on this machine."""
        self._process = process

    def line(self, file: str | None, number: int | None) -> str:
        if self._process is None:
            return ""
        return self._lines.line(file, number)

    def read_wanted(self) -> None:
        """Read the files that a drawing wanted, if there are any."""
        if self._lines.is_wanting and not self._is_reading:
            self._is_reading = True
            self._screen.start(self._read, "sources")

    async def _read(self) -> None:
        try:
            process = self._process
            has_lines = process is not None and await asyncio.to_thread(
                self._lines.read, process.pid, _seconds(process.started_at)
            )
        finally:
            self._is_reading = False
        if has_lines:
            self._draw()


def _seconds(time: str) -> float:
    """The seconds since 1970 of a time in ISO 8601; 0 if there is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0
