"""The alerts of the past in words: how many, how often, and how long ago the last one was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct
from rich.cells import cell_len

from locktop.collector.model import Notable, NotableKind
from locktop.tui.views.cells import counted
from locktop.tui.views.past_flag import span_text

#: Fewer alerts have no rhythm.
_MIN_REGULAR = 3
#: So many of the distances must be between half and twice the median, or there is no rhythm.
_REGULAR_SHARE = 0.7
_NS = 1_000_000_000


class PastAlerts(Struct, frozen=True):
    """The deadlocks and long waits of a past, as seen from a moment."""

    alerts: Sequence[Notable] = ()  # the oldest first
    at_ns: int = 0  # the moment on the screen, nanoseconds since 1970

    @property
    def earlier(self) -> Sequence[Notable]:
        """The alerts up to the moment."""
        return [alert for alert in self.alerts if alert.time_ns <= self.at_ns]

    @property
    def later(self) -> Sequence[Notable]:
        """The alerts after the moment, which only a past has."""
        return [alert for alert in self.alerts if alert.time_ns > self.at_ns]


#: For a screen without a past.
NO_ALERTS = PastAlerts()


def quiet_text(past: PastAlerts, lock: str, begin: str, width: int) -> str:
    """Return what is known of the alerts around a calm moment, in the longest text that fits.

    Args:
        past: the alerts.
        lock: the name of the lock of the last alert before the moment; "" if it is not known.
        begin: the begin of the text, with a blank at the end.
        width: cells.

    Returns:
        The text; "" if there are no alerts.
    """
    tries = [f" {begin}{text}" for text in _wordings(past, lock)]
    return next((text for text in tries if cell_len(text) <= width), tries[-1] if tries else "")


def _wordings(past: PastAlerts, lock: str) -> Iterator[str]:
    before, after = past.earlier, past.later
    if before:
        ago = f"{span_text(past.at_ns - before[-1].time_ns)} ago"
        last = f"the last {ago}" if len(before) > 1 else ago
        if lock:
            yield f"{how_many(before)}{how_often(before)}, {last} for {lock} (key {{)"
        yield f"{how_many(before)}{how_often(before)}, {last} (key {{)"
        yield f"{how_many(before)}, {last} (key {{)"
        yield f"{how_many(before)} (key {{)"
    elif after:
        first = span_text(after[0].time_ns - past.at_ns)
        when = f"the first in {first}" if len(after) > 1 else f"in {first}"
        yield f"{how_many(after)} to come, {when} (key }})"
        yield f"{how_many(after)} to come (key }})"


def how_many(alerts: Sequence[Notable]) -> str:
    """Return the number of alerts, in the word for their kind: ``28 long waits``."""
    return count_text(Counter(alert.kind for alert in alerts))


def count_text(counts: Mapping[NotableKind, int]) -> str:
    """Return the number of alerts of each kind as one number: ``28 long waits``, ``29 alerts``."""
    kinds = [kind for kind, count in counts.items() if count]
    word = {NotableKind.WAIT: "long wait", NotableKind.DEADLOCK: "deadlock"}
    return counted(sum(counts.values()), word[kinds[0]] if len(kinds) == 1 else "alert")


def how_often(alerts: Sequence[Notable]) -> str:
    """Return ``, one about every 20 s``; "" for few alerts, or for alerts without a rhythm."""
    if len(alerts) < _MIN_REGULAR:
        return ""
    gaps = [later.time_ns - earlier.time_ns for earlier, later in pairwise(alerts)]
    middle = median(gaps)
    regular = sum(middle / 2 <= gap <= middle * 2 for gap in gaps)
    if middle < _NS or regular < len(gaps) * _REGULAR_SHARE:
        return ""
    return f", one about every {span_text(round(middle))}"
