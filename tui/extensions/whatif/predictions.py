"""Predictions for the commands, and the line of the terminal that says what goes on meanwhile."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import threading
import time
from typing import TYPE_CHECKING

from locktop.tui.commands import recorded
from locktop.tui.commands.level_report import level_reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from locktop.collector.extensions.whatif.answers import Answered
    from locktop.collector.extensions.whatif.question import WantedChanges
    from locktop.collector.sources.attach import Source

#: Seconds to record; and the longest time, as the records of the span are kept in memory.
DURATION_S, _MAX_DURATION_S = 10.0, 3600.0


def check_duration(duration_s: float | None) -> None:
    """Raise LocktopError for a time that is too long."""
    from locktop.collector.errors import LocktopError

    if duration_s is not None and duration_s > _MAX_DURATION_S:
        raise LocktopError(
            f"-d {duration_s:.0f}: whatif records for at most {_MAX_DURATION_S:.0f} s"
        )


def predict_process(
    source: Source,
    pid: int,
    duration_s: float | None,
    wanted: WantedChanges,
    on_recorded: Callable[[], None] = lambda: None,
) -> Answered:
    """Record a process, and answer; a terminal shows how long that takes.

    Args:
        source: the process; the caller closes it.
        pid: the same process.
        duration_s: seconds to record; None: the usual time.
        wanted: the changes.
        on_recorded: is called after the recording, before the replays.

    Raises:
        LocktopError: see answers.predict_process().
    """
    from locktop.collector.extensions.whatif import answers

    duration_s = duration_s or DURATION_S
    progress = _Progress(duration_s)

    def replays() -> None:
        progress.replays()
        on_recorded()

    with level_reported(pid), progress.displayed():
        return answers.predict_process(source, pid, duration_s, wanted, replays)


def predict_file(arguments: argparse.Namespace, wanted: WantedChanges) -> Answered:
    """Answer from a span of the recording FILE. --at is the end of the span, as --to is."""
    from locktop.collector.extensions.whatif import answers
    from locktop.collector.recording import chosen_moment

    with recorded.opened(arguments.file) as recording:
        recorded.announce(recording, arguments)
        end = arguments.end if arguments.at is None else arguments.at
        from_ns, to_ns = chosen_moment.span_ns(recording, arguments.begin, end)
        return answers.predict_recording(recording, from_ns, to_ns, wanted)


class _Progress:
    """One line of the terminal: the seconds that are left to record, then the replays."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self._is_recorded = threading.Event()
        self._lock = threading.Lock()  # for the line

    @contextlib.contextmanager
    def displayed(self) -> Iterator[None]:
        """Show the line meanwhile, if there is a terminal."""
        if not sys.stderr.isatty():
            yield
            return
        counting = threading.Thread(target=self._count, name="progress", daemon=True)
        counting.start()
        try:
            yield
        finally:
            self._is_recorded.set()
            counting.join()
            _write("")

    def replays(self) -> None:
        """Say that the process is recorded."""
        with self._lock:
            self._is_recorded.set()
            if sys.stderr.isatty():
                _write("replaying the records with each change")

    def _count(self) -> None:
        # The first scans come before the recording, so the first seconds show the whole time.
        end_s = time.monotonic() + self._duration_s + min(1.0, self._duration_s / 4)
        while not self._is_recorded.is_set():
            left_s = min(math.ceil(self._duration_s), max(0, math.ceil(end_s - time.monotonic())))
            with self._lock:
                if not self._is_recorded.is_set():
                    _write(
                        f"recording all holds for {self._duration_s:g} s, {left_s} s left;"
                        " Ctrl+C ends this"
                    )
            self._is_recorded.wait(1.0)


def _write(text: str) -> None:
    """Write over the line; "": clear it."""
    with contextlib.suppress(OSError):
        print(f"\r{text:<70}\r", end="", file=sys.stderr, flush=True)
