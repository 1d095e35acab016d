"""Reads the source files of visible stacks beside the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from locktop.collector.format.source_lines import SourceLines
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

    def line(self, file: str | None, number: int | None) -> str:
        """See SourceLines."""
        return self._lines.line(file, number)

    def read_wanted(self) -> None:
        """Read the files that a drawing wanted, if there are any."""
        if self._lines.is_wanting and not self._is_reading:
            self._is_reading = True
            self._screen.start(self._read, "sources")

    async def _read(self) -> None:
        try:
            found = await asyncio.to_thread(self._lines.read)
        finally:
            self._is_reading = False
        if found:
            self._draw()
