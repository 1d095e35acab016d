"""Predictions for the commands, and the line of the terminal that says what goes on meanwhile."""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import sys
import time
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.render.words import plot
from locktop.collector.render.words.wrap import wrapped
from locktop.tui.commands import recorded
from locktop.tui.commands.level_report import level_reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from locktop.collector.extensions.whatif.answers import Answered
    from locktop.collector.extensions.whatif.model import Progress
    from locktop.collector.extensions.whatif.question import WantedChanges
    from locktop.collector.sources.attach import Source

#: Seconds to record; and the longest time, as the records of the span are kept in memory.
DURATION_S, _MAX_DURATION_S = 10.0, 3600.0
#: Cells of the bar, and seconds between two drawings.
_BAR_WIDTH, _REDRAW_S = 20, 0.25


def check_duration(duration_s: float | None) -> None:
    """Raise LocktopError for a time that is too long."""
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
    line = _ProgressLine(duration_s)

    def show(progress: Progress) -> None:
        if progress.is_recorded and not line.is_recorded:
            on_recorded()
        line.show(progress)

    with level_reported(pid), line.cleared():
        return answers.predict_process(source, pid, duration_s, wanted, show)


def predict_file(arguments: argparse.Namespace, wanted: WantedChanges) -> Answered:
    """Answer from a span of the recording FILE. --at is the end of the span, as --to is."""
    from locktop.collector.extensions.whatif import answers
    from locktop.collector.recording import chosen_moment

    with recorded.opened(arguments.file) as recording:
        recorded.announce(recording, arguments)
        end = arguments.end if arguments.at is None else arguments.at
        from_ns, to_ns = chosen_moment.span_ns(recording, arguments.begin, end)
        line = _ProgressLine(0.0)
        with line.cleared():
            return answers.predict_recording(recording, from_ns, to_ns, wanted, line.show)


class _ProgressLine:
    """One line of the terminal with a bar: of the recording, then of the replays."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self.is_recorded = False
        self._drawn_at = float("-inf")

    @contextlib.contextmanager
    def cleared(self) -> Iterator[None]:
        """Clear the line at the end."""
        try:
            yield
        finally:
            self._write("")

    def show(self, progress: Progress) -> None:
        """Show how far the predictions are, and what is known so far."""
        now = time.monotonic()
        if progress.is_recorded == self.is_recorded and now < self._drawn_at + _REDRAW_S:
            return
        self._drawn_at, self.is_recorded = now, progress.is_recorded
        drawn = f"{plot.bar(progress.part, _BAR_WIDTH)} {progress.part:4.0%}"
        so_far = f"  so far: {progress.learned}" if progress.learned else ""
        if progress.is_recorded:
            self._write(f"replaying {drawn}{so_far}")
        else:
            left_s = math.ceil(self._duration_s * (1 - progress.part))
            self._write(f"recording {drawn}, {left_s} s left{so_far}; Ctrl+C ends this")

    def _write(self, text: str) -> None:
        """Write over the line; "": clear it."""
        if sys.stderr.isatty():
            with contextlib.suppress(OSError):
                width = max(20, shutil.get_terminal_size().columns - 1)
                line = wrapped(text, width)[0]
                print(f"\r{line:<{width}}\r", end="", file=sys.stderr, flush=True)
