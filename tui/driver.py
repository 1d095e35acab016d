"""The terminal driver, with a meter: what was written, and whether the terminal has taken it.

Textual hands its output to a thread whose queue blocks the event loop when it is full. Asking
the meter before a picture is drawn keeps the queue from ever filling up.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver

from locktop.tui.sgr import Shortener


class Meter:
    """Counts output; one thread adds to ``queued``, another one to ``taken``."""

    def __init__(self) -> None:
        self.queued = 0  # bytes handed to the writer
        self.taken = 0  # bytes that the terminal has taken from it

    @property
    def drained(self) -> bool:
        """Whether nothing is on its way to the terminal."""
        return self.taken >= self.queued


class _MeteredFile:
    """Passes text on and tells the meter once the terminal has taken it.

    A terminal that has hung up takes everything. Textual's writer would end at the first error, and
    then nobody would empty the queue that the way out fills; its reader would read the end of the
    file over and over. So the app is told to end, as by the kernel where this is its own terminal.
    """

    def __init__(self, file: IO[str], meter: Meter) -> None:
        self._file = file
        self._meter = meter
        self._passed = 0
        self._gone = False

    def write(self, text: str) -> int:
        self._try(lambda: self._file.write(text))
        self._passed += len(text.encode())
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)
        self._meter.taken = self._passed

    def _try(self, output: Callable[[], object]) -> None:
        if self._gone:
            return
        try:
            output()
        except OSError:
            self._gone = True
            os.kill(os.getpid(), signal.SIGHUP)

    def fileno(self) -> int:
        return self._file.fileno()


def metered_driver(meter: Meter) -> type[LinuxDriver]:
    """A driver class that reports to ``meter``."""

    class MeteredDriver(LinuxDriver):
        """See the module."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            # Textual would write to the standard error, which may go to a file.
            screen = sys.__stdout__
            assert screen is not None  # it is a terminal
            screen.reconfigure(errors="backslashreplace")  # as there: nothing must raise
            self._file: Any = _MeteredFile(screen, meter)
            self._shortener = Shortener()

        def write(self, data: str) -> None:
            """Shorten, count, write."""
            short = self._shortener.shorten(data)
            meter.queued += len(short.encode())
            super().write(short)

        def _get_terminal_size(self) -> tuple[int, int]:
            """Of a terminal that says 0 x 0 (a serial line, a container's first moment) Textual and
            its console each think something else, and would change the size to and fro for ever."""
            width, height = self._app.console.size
            return width, height

    return MeteredDriver
