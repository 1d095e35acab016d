"""The terminal driver with a meter: the bytes written, and the bytes that the terminal has taken.

Textual hands its output to a thread. A full queue of this thread blocks the event loop. The screen
reads the meter before it draws, so the queue never fills up. When the app ends, the driver waits
for the output, but only for some seconds. Perhaps no terminal reads any more. The input may have
any bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Mapping
from types import FrameType
from typing import IO, Any

from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._xterm_parser import XTermParser
from textual.constants import DISABLE_KITTY_KEY, ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from locktop.tui.terminal.ability_question import QUESTION, answered_abilities
from locktop.tui.terminal.ascii_only import first_environment, shows_utf8, to_ascii
from locktop.tui.terminal.cells import TerminalCells
from locktop.tui.terminal.description import described_abilities
from locktop.tui.terminal.input_decoder import InputDecoder
from locktop.tui.terminal.lost_output import discard
from locktop.tui.terminal.short_text import ASCII_SET

#: Seconds that the terminal has for the output when the app ends.
PATIENCE_S = 3.0
#: Afterwards the driver discards the output, at this interval.
_AGAIN_S = 0.1
#: Input is read in pieces of at most this size.
_INPUT_BYTES = 4096
#: After a read, Textual's parser is told the time so often, seconds. An escape may be a key or the
#: begin of a sequence, and the parser decides after ESCAPE_DELAY.
_TICK_S = 0.1


#: Textual sets these at the start: second screen, no cursor, focus, paste, no wrapping, keyboard.
#: The flags of the keyboard are set, not pushed: the end takes one set of flags away.
_MODES = "\x1b[?1049h\x1b[?25l\x1b[?1004h\x1b[?2004h\x1b[?7l" + (
    "" if DISABLE_KITTY_KEY else "\x1b[=25u"
)


class Meter:
    """Counts output. One thread adds to ``queued``, another thread to ``taken``."""

    def __init__(self) -> None:
        self.queued = 0  # bytes handed to the writer
        self.taken = 0  # bytes that the terminal has taken from it
        #: Whether to use synchronized output if the terminal can; None: unless in a multiplexer.
        self.synchronized: bool | None = None
        #: Limits the seconds that the terminal may take from now on. A signal handler may call it.
        self.hurry: Callable[[], None] = lambda: None
        #: Leaves the terminal to the caller for ever; see Patience.give_up().
        self.abandon: Callable[[int], bool] = lambda _: True

    @property
    def drained(self) -> bool:
        """Whether the terminal has taken all output."""
        return self.taken >= self.queued


class _MeteredFile:
    """Passes text on, and updates the meter when the terminal has taken it.

    A terminal that has hung up "takes" everything. Textual's writer thread would end at the first
    error, and the queue would fill up while the app closes. Textual's reader would read the end of
    the file again and again. So the first error sends SIGHUP, as the kernel does for the
    controlling terminal.
    """

    def __init__(self, file: IO[str], meter: Meter) -> None:
        self._file = file
        self._meter = meter
        self._passed = 0
        self._gone = False
        self.dropping = False  # whether output is discarded
        self.abandoned = False  # whether the terminal belongs to another thread
        self.busy = False  # whether a thread may be writing

    def write(self, text: str) -> int:
        if not self.dropping:
            self._try(lambda: self._file.write(text))
        self._passed += len(text.encode())
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)
        self._meter.taken = self._passed

    def _try(self, output: Callable[[], object]) -> None:
        self.busy = True
        try:
            if not self._gone and not self.abandoned:
                output()
        except OSError:
            self._gone = True
            discard(self._file)
            _report_lost_terminal()
        finally:
            self.busy = False

    def fileno(self) -> int:
        return self._file.fileno()


def is_multiplexed(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one of tmux or GNU screen, perhaps of another machine."""
    term = environ.get("TERM", "")
    return bool(environ.get("TMUX") or environ.get("STY")) or term.startswith(("tmux", "screen"))


def _report_lost_terminal() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


class Patience:
    """Frees a writer thread that is blocked in its terminal after some seconds, repeatedly.

    A timer's signal does that: its handler runs in the main thread, even while that waits for the
    writer. Started in another thread, this class does nothing.
    """

    def __init__(
        self,
        file: _MeteredFile,
        writer: Callable[[], threading.Thread | None],
        patience_s: float,
    ) -> None:
        self._file = file
        self._writer = writer
        self._patience_s = patience_s
        self._before: Any = None
        self._started = False

    def start(self) -> None:
        """Begin to count the seconds."""
        if self._started or threading.current_thread() is not threading.main_thread():
            return
        self._started = True
        self._before = signal.signal(signal.SIGALRM, self._expire)
        signal.setitimer(signal.ITIMER_REAL, self._patience_s, _AGAIN_S)

    def stop(self) -> None:
        """Free the writer no more."""
        if not self._started:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        # The default action of a signal still pending for the writer would end the process.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, self._before)
        self._started = False

    def give_up(self, number: int) -> bool:
        """Discard all output from now on; return whether the writer has left the terminal.

        Any thread may call, and calls again until the result is true.

        Args:
            number: a signal that wakes the writer, and has a handler without an effect.
        """
        self._file.abandoned = True
        if self._file.busy:
            self._free_writer(number)
        return not self._file.busy

    def _expire(self, number: int, frame: FrameType | None) -> None:
        if not self._file.abandoned:
            self._file.dropping = True
            self._free_writer(signal.SIGALRM)

    def _free_writer(self, number: int) -> None:
        with contextlib.suppress(termios.error):
            termios.tcflush(self._file.fileno(), termios.TCOFLUSH)
        writer = self._writer()
        # The kernel does not wake the writer when there is room again, so a signal does.
        if writer is not None and writer.ident is not None and writer.is_alive():
            signal.pthread_kill(writer.ident, number)


class MeteredDriver(LinuxDriver):
    """See the module. A subclass has the meter."""

    meter: Meter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Textual would write to the standard error, which may be a file.
        screen = sys.__stdout__
        assert screen is not None  # the app runs on a terminal only
        screen.reconfigure(errors="backslashreplace")  # like stderr: a write must not raise
        self._metered = _MeteredFile(screen, self.meter)
        self._file: Any = self._metered
        self._cells = TerminalCells(described_abilities())
        self._update_begin = ""  # of a synchronized update without a change so far
        self._is_ascii = not shows_utf8(first_environment())
        self._patience = Patience(self._metered, lambda: self._writer_thread, PATIENCE_S)
        self._last_words: list[str] | None = None  # written since the app began to end
        self._given_back = True  # whether the terminal is the shell's
        self._end_of_input = os.eventfd(0)
        self.meter.hurry = self._patience.start
        self.meter.abandon = self._patience.give_up

    def write(self, data: str) -> None:
        """Reduce ``data`` to what changes, count and write it."""
        if data == SYNC_START:
            self._update_begin = data
            return
        if data == SYNC_END and self._update_begin:  # the update has changed nothing
            self._update_begin = ""
            return
        short = self._cells.reduce(to_ascii(data) if self._is_ascii else data)
        if not short:
            return
        short, self._update_begin = self._update_begin + short, ""
        self.meter.queued += len(short.encode())
        if self._last_words is not None:
            self._last_words.append(short)
        super().write(short)

    def _request_terminal_sync_mode_support(self) -> None:
        """Ask for synchronized output, unless a multiplexer would answer.

        tmux 3.7 repaints the whole pane after each synchronized update.
        """
        wanted = self.meter.synchronized
        if wanted if wanted is not None else not is_multiplexed(os.environ):
            super()._request_terminal_sync_mode_support()

    def start_application_mode(self) -> None:
        """Start, or continue after a stop."""
        if not self._given_back:
            self._set_terminal_again()
            return
        self._metered.dropping, self._last_words = False, None
        self._cells.resize(*self._get_terminal_size())
        self._given_back = False
        self._loop = asyncio.get_running_loop()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self._must_signal_resume:  # in the background, where nothing may be set
            self._given_back = True
        elif self.input_tty:
            self.write(QUESTION)
            self.flush()

    def _sigtstp_application(self, *arguments: object) -> None:
        """SIGTSTP: reset the terminal if it is the screen's, and stop."""
        if self._given_back:
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: object) -> None:
        """SIGCONT: continue after SIGTSTP. Anybody may send SIGCONT at any other time.

        Textual would start application mode again, with second threads that never end.
        """
        if self._must_signal_resume:
            super()._sigcont_application(*arguments)
        elif not self._given_back:
            self._loop.call_soon_threadsafe(self._set_terminal_again)

    def _set_terminal_again(self) -> None:
        """Set the modes again, and paint all: after SIGSTOP a shell may have changed both."""
        if self._given_back:
            return
        with contextlib.suppress(termios.error):
            modes = termios.tcgetattr(self.fileno)
            modes[tty.LFLAG] = self._patch_lflag(modes[tty.LFLAG])
            modes[tty.IFLAG] = self._patch_iflag(modes[tty.IFLAG])
            modes[tty.CC][termios.VMIN] = 1
            termios.tcsetattr(self.fileno, termios.TCSANOW, modes)
        self.write(_MODES)
        self._enable_mouse_support()
        self.flush()
        self.forget_cells()
        self._app.call_later(self._app.screen.refresh)

    def process_message(self, message: Message) -> None:
        """Pass on what the terminal sent, but not the answer to the driver's own question."""
        if isinstance(message, events.CursorPosition):
            abilities = self._cells.abilities
            self._cells.abilities = answered_abilities(abilities, message.y, message.x)
        else:
            super().process_message(message)

    def stop_application_mode(self) -> None:
        """Reset the terminal, if it takes output."""
        self._last_words = []
        self._patience.start()
        if self._cells.abilities.draws_lines:  # the end of a line may have been discarded
            self.write(ASCII_SET)
        super().stop_application_mode()
        self._given_back = True

    def disable_input(self) -> None:
        """Read no more keys, and discard what was typed for the screen.

        Textual calls again when the terminal is the shell's: keys typed since are for the shell.
        """
        if not self._given_back:
            if self._key_thread is not None and self._key_thread.is_alive():
                os.eventfd_write(self._end_of_input, 1)
            super().disable_input()

    def close(self) -> None:
        """Wait for the writer; if it was freed, repeat the reset: now there is room for it."""
        self._patience.start()
        super().close()
        # Before the reset: a later timer would discard the reset too.
        self._patience.stop()
        if self._metered.dropping and not self._metered.abandoned:
            with contextlib.suppress(termios.error):
                termios.tcflush(self.fileno, termios.TCOFLUSH)
            with contextlib.suppress(OSError):
                os.write(self.fileno, "".join(self._last_words or ()).encode())

    @property
    def has_mouse(self) -> bool:
        """Whether the terminal reports clicks."""
        return self._mouse

    def set_mouse(self, wanted: bool) -> None:
        """Have the terminal report clicks, or leave the mouse to the terminal."""
        if not wanted:
            self._disable_mouse_support()
        self._mouse = wanted
        if wanted:
            self._enable_mouse_support()

    def _enable_mouse_support(self) -> None:
        """Enable clicks and the wheel. Each movement would be bytes that nothing here needs."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")
            self.flush()

    def _disable_mouse_support(self) -> None:
        """Undo the above."""
        if self._mouse:
            self.write("\x1b[?1006l\x1b[?1000l")
            self.flush()

    def run_input_thread(self) -> None:
        """Read keys and mouse reports until the app ends, or the terminal is lost.

        Textual's own loop fails at a byte that is no UTF-8. At the end of the file that loop
        goes on, without a pause.
        """
        parser, decoder = XTermParser(self._debug), InputDecoder()
        last_tick_s = 0.0  # on the monotonic clock
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._end_of_input, selectors.EVENT_READ)
            while True:
                # Without a key that may need it, no tick wakes the thread.
                ready = selector.select(_TICK_S if time.monotonic() < last_tick_s else None)
                fds = [key.fd for key, _ in ready]
                if self._end_of_input in fds:
                    os.eventfd_read(self._end_of_input)
                    return
                if fds:
                    data = self._read()
                    if not data:
                        _report_lost_terminal()
                        return
                    last_tick_s = time.monotonic() + ESCAPE_DELAY + _TICK_S
                    # Without text, Textual's parser would take this for the end.
                    if text := decoder.decode(data):
                        for event in parser.feed(text):
                            self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _INPUT_BYTES)
        except OSError:
            return b""

    def forget_cells(self) -> None:
        """Send the next painting whole: another program may have written on the terminal."""
        self._cells.forget()

    def size_event(self) -> events.Resize:
        """Return the event that tells the present size of the terminal, and expect its painting."""
        size = Size(*self._get_terminal_size())
        self._cells.resize(*size)
        return events.Resize(size, size)

    def _get_terminal_size(self) -> tuple[int, int]:
        """The size of the terminal.

        For a terminal of size 0 x 0 (serial line, new container), Textual and its console
        assume different sizes. They would change the size for ever.
        """
        width, height = self._app.console.size
        return width, height


def metered_driver(meter: Meter) -> type[LinuxDriver]:
    """Return a driver class that reports to ``meter``."""
    return type("MeteredDriver", (MeteredDriver,), {"meter": meter})
