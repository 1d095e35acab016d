"""The signals that end a screen, from before the terminal is set until it is as before.

The default action of such a signal would end the process at once. Then the terminal would stay in
raw mode, on the second screen and without a cursor.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

#: The kernel sends these for a fault of the process itself, which cannot go on.
_FAULTS = {
    signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV,
    signal.SIGSYS,
}  # fmt: skip
#: These end no process by default, or have another meaning here, or have no handler.
_OTHERS = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT,
    signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR2,
}  # fmt: skip
#: Each other signal ends a process that does not handle it. The C library uses 32 and 33 itself.
END_SIGNALS = frozenset(signal.valid_signals()) - _FAULTS - _OTHERS - {32, 33}
#: These end the screen even if locktop was started with the signal ignored, as by nohup.
_ALWAYS = (signal.SIGTERM, signal.SIGHUP)


class EndSignals:
    """Handles the signals from ``with`` on; keeps the first one until somebody obeys.

    The handlers raise nothing: Python drops an exception in some places of an import.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self._obey: Callable[[int], object] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Begin to handle the signals. Only the main thread may do that."""
        for number in END_SIGNALS:
            before = signal.getsignal(number)
            # None: a handler that is not Python's, which could not be restored.
            if before is not None and (number in _ALWAYS or before is not signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._handle_signal)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers from before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def obey(self, obey: Callable[[int], object]) -> None:
        """Call ``obey`` with each signal from now on, in the handler, and with one that came."""
        self._obey = obey
        if self.first is not None:
            obey(self.first)

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        if self.first is None:
            self.first = number
        if self._obey is not None:
            self._obey(number)
