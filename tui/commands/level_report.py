"""The line in which an interrupted command says the level of a process."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from locktop.collector.errors import LocktopError

#: Signals that end the command as Ctrl+C does, if the command would die of them.
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def level_reported(pid: int) -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a recording in order; then say which level the process has.

    Raises:
        SystemExit: for such a signal, with the exit status that a shell gives for it.
    """
    before = _level(pid)
    former = {number: signal.getsignal(number) for number in _END_SIGNALS}
    replaced = [number for number, handler in former.items() if handler is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _end)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with contextlib.suppress(OSError):
            print(f"locktop: interrupted{_level_text(pid, before)}", file=sys.stderr, flush=True)
        raise
    finally:
        for number in replaced:
            signal.signal(number, former[number])


def _end(number: int, _: FrameType | None) -> NoReturn:
    for end_signal in _END_SIGNALS:
        signal.signal(end_signal, signal.SIG_IGN)  # the level comes back now
    raise SystemExit(128 + number)


def _level_text(pid: int, before: str) -> str:
    now = _level(pid)
    if not now:
        return ""
    as_before = " as before" if now == before else f", and was {before} before"
    return f"; the level of process {pid} is {now}{as_before}"


def _level(pid: int) -> str:
    """Return the level of a process; "" if it runs without the library or has ended."""
    from locktop.collector.sources import levels

    try:
        return levels.read_level(pid).level
    except LocktopError:
        return ""
