"""Ends the tool in any case after an end signal or the loss of the terminal.

Usually the app closes itself. The event loop may be stuck though, and so may a thread that the end
waits for. So a thread of its own watches the terminal and the signals, and ends the process late.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
import time
from collections.abc import Callable
from typing import Protocol, Self

from locktop.tui.terminal.end_signals import END_SIGNALS

#: Seconds from the signal to the end of the process. The promise of the documents is 5 s.
LIMIT_S = 4.0
#: Seconds for the writer to leave the terminal, and for the reset.
_ABANDON_WITHIN_S = 0.4
_RESET_WITHIN_S = 0.2
#: Seconds between two attempts to wake the writer.
_PAUSE_S = 0.01
#: Wakes a thread that is blocked in a write. Nothing else uses this signal.
_WAKE_SIGNAL = signal.SIGURG
#: Not SIGALRM, which the driver sends itself. SIGINT and SIGQUIT may be keys for an editor.
_WATCHED = END_SIGNALS - {signal.SIGALRM, signal.SIGINT, signal.SIGQUIT}
_STOP = b"\0"  # no signal has this number
#: Undoes the drawing set, and what Textual sets: wrapping, mouse, paste, keyboard, other screen,
#: cursor, focus, colours.
_RESET = (
    b"\x1b(B\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[0m"
)


class Launched(Protocol):
    """A program that locktop started, as the watchdog needs it. Both calls return soon."""

    def on_end_signal(self, number: int) -> None:
        """Ask the program to end, or leave it running, as the signal of locktop demands."""

    def kill(self) -> None:
        """End the program now, unless it is left running."""


class Watchdog:
    """Watches from ``with`` on; after a signal to the end of the process, else to that of ``with``.

    A terminal that is lost counts as SIGHUP, which the kernel sends only to some processes.
    """

    def __init__(self, abandon: Callable[[int], bool], launched: Launched | None = None) -> None:
        """Args:
        abandon: makes other threads leave the terminal; see Patience.give_up().
        launched: the program that the screen shows, if locktop started that program.
        """
        self._abandon = abandon
        self._launched = launched
        self._attributes = {
            number: termios.tcgetattr(number) for number in (0, 1) if os.isatty(number)
        }
        self._signal: int | None = None
        self._decided = threading.Event()  # a signal came, or the screen has ended
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread. Only the main thread may do that."""
        self._main = threading.get_ident()
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        # The kernel's handler writes there, even while the main thread runs no Python code.
        self._handler = signal.signal(_WAKE_SIGNAL, lambda *_: None)
        self._before = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread, unless a signal came: then the rest of the process may hang too."""
        signal.set_wakeup_fd(self._before)
        with contextlib.suppress(BlockingIOError):
            os.write(self._woken, _STOP)
        self._decided.wait()
        if self._signal is None:
            self._thread.join()
            signal.signal(_WAKE_SIGNAL, self._handler)
            os.close(self._wake)
            os.close(self._woken)

    def _run(self) -> None:
        # To set the terminal from the background would stop the process.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        self._signal = self._wait()
        self._decided.set()
        if self._signal is None:
            return
        end = time.monotonic() + LIMIT_S
        if self._launched is not None:
            self._launched.on_end_signal(self._signal)
        time.sleep(max(0.0, end - time.monotonic()))
        self._restore_terminal()
        if self._launched is not None:
            self._launched.kill()
        os._exit(128 + self._signal)

    def _wait(self) -> int | None:
        """Wait for a signal that ends the tool; None: the screen has ended."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for number in self._attributes:
            poll.register(number, 0)  # for a hang-up alone
        while True:
            ready = poll.poll()
            if all(descriptor != self._wake for descriptor, _ in ready):
                os.kill(os.getpid(), signal.SIGHUP)
                return signal.SIGHUP
            numbers = os.read(self._wake, 4096)
            if set(numbers) - {_WAKE_SIGNAL, *_STOP}:
                # The kernel may have chosen another thread, and only the main one runs handlers.
                signal.pthread_kill(self._main, _WAKE_SIGNAL)
            for number in numbers:
                if number in _WATCHED:
                    return number
            if _STOP in numbers:
                return None

    def _restore_terminal(self) -> None:
        end = time.monotonic() + _ABANDON_WITHIN_S
        while not self._abandon(_WAKE_SIGNAL) and time.monotonic() < end:
            time.sleep(_PAUSE_S)
        for number, attributes in self._attributes.items():
            with contextlib.suppress(termios.error):
                termios.tcsetattr(number, termios.TCSANOW, attributes)
        if 1 in self._attributes:
            writer = threading.Thread(target=_reset, daemon=True)
            writer.start()
            writer.join(_RESET_WITHIN_S)


def _reset() -> None:
    """Make room in the terminal, and reset it. The call blocks if nobody reads and none is made."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(1, termios.TCOFLUSH)
        os.write(1, _RESET)
