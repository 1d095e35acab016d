"""The terminal driver, with a meter: what was written, and whether the terminal has taken it.

Textual hands its output to a thread whose queue blocks the event loop when it is full. Asking
the meter before a picture is drawn keeps the queue from ever filling up. What is on its way when
the app ends is waited for, but not for ever: nobody may read that terminal any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver

from locktop.tui.terminal.sgr import Shortener

#: How long the terminal may take for what is on its way when the app is to end.
_PATIENCE_S = 3.0
#: What it has not taken by then is thrown away, so often.
_AGAIN_S = 0.1


class Meter:
    """Counts output; one thread adds to ``queued``, another one to ``taken``."""

    def __init__(self) -> None:
        self.queued = 0  # bytes handed to the writer
        self.taken = 0  # bytes that the terminal has taken from it
        #: The app is to end: let the terminal hold that up for a few seconds only. For a handler of
        #: signals, too.
        self.hurry: Callable[[], None] = lambda: None

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
        self.dropping = False  # what is written goes nowhere

    def write(self, text: str) -> int:
        if not self.dropping:
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


class _Patience:
    """Once started, gives a writer that is blocked in its terminal so long and then frees it, as
    often as it is blocked again. By a timer's signal: the main thread may be waiting for the writer
    itself, and handlers run there all the same. Elsewhere it does nothing."""

    def __init__(self, file: _MeteredFile, writer: Callable[[], threading.Thread | None]) -> None:
        self._file = file
        self._writer = writer
        self._before: Any = None
        self._started = False

    def start(self) -> None:
        if self._started or threading.current_thread() is not threading.main_thread():
            return
        self._started = True
        self._before = signal.signal(signal.SIGALRM, self._over)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S, _AGAIN_S)

    def stop(self) -> None:
        if not self._started:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        # One that is still on its way to the writer would end the whole process, at the default.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, self._before)
        self._started = False

    def _over(self, number: int, frame: FrameType | None) -> None:
        self._file.dropping = True
        with contextlib.suppress(termios.error):
            termios.tcflush(self._file.fileno(), termios.TCOFLUSH)
        writer = self._writer()
        # That there is room again is told to nobody: the writer has to be sent to look.
        if writer is not None and writer.ident is not None and writer.is_alive():
            signal.pthread_kill(writer.ident, signal.SIGALRM)


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
            self._metered = _MeteredFile(screen, meter)
            self._file: Any = self._metered
            self._shortener = Shortener()
            self._patience = _Patience(self._metered, lambda: self._writer_thread)
            self._last_words: list[str] | None = None  # since the end began
            meter.hurry = self._patience.start

        def write(self, data: str) -> None:
            """Shorten, count, write."""
            short = self._shortener.shorten(data)
            meter.queued += len(short.encode())
            if self._last_words is not None:
                self._last_words.append(short)
            super().write(short)

        def start_application_mode(self) -> None:
            """Begin, or go on after a stop."""
            self._metered.dropping, self._last_words = False, None
            super().start_application_mode()  # type: ignore[no-untyped-call]

        def stop_application_mode(self) -> None:
            """Put the terminal in order, if it takes that."""
            self._last_words = []
            self._patience.start()
            super().stop_application_mode()

        def close(self) -> None:
            """Wait for the writer; where it had to be freed, say once more what puts the terminal
            in order: there is room for that now, and somebody may read it later."""
            self._patience.start()
            super().close()
            if self._metered.dropping:
                with contextlib.suppress(OSError):
                    os.write(self.fileno, "".join(self._last_words or ()).encode())
            self._patience.stop()

        def _get_terminal_size(self) -> tuple[int, int]:
            """Of a terminal that says 0 x 0 (a serial line, a container's first moment) Textual and
            its console each think something else, and would change the size to and fro for ever."""
            width, height = self._app.console.size
            return width, height

    return MeteredDriver
