"""Histograms of waits and holds as bars."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from locktop.collector.model import Histogram, lower_ticks, percentile_s
from locktop.tui.views.cells import bar, duration, exact
from locktop.tui.views.detail_parts import blank, heading
from locktop.tui.views.styled_line import Line, make_line

_MAX_BARS = 8
_BAR_WIDTH = 36
#: Buckets that one bar stands for. A power of two has four buckets.
_STEPS = (1, 2, 4, 8, 16, 32, 64)


class Bar(Struct, frozen=True):
    """The waits or holds from one length to another."""

    from_s: float
    to_s: float
    count: int


def bars(histogram: Histogram) -> list[Bar]:
    """Return at most 8 bars from the first bucket with a count to the last one."""
    first, last = histogram.buckets[0], histogram.buckets[-1]
    step = next(step for step in _STEPS if last // step - first // step < _MAX_BARS)
    counts: dict[int, int] = {}
    for bucket, count in zip(histogram.buckets, histogram.counts, strict=True):
        counts[bucket // step] = counts.get(bucket // step, 0) + count
    return [
        Bar(
            from_s=lower_ticks(number * step) / histogram.hz,
            to_s=lower_ticks((number + 1) * step) / histogram.hz,
            count=counts.get(number, 0),
        )
        for number in range(first // step, last // step + 1)
    ]


def histogram_lines(
    what: str, histogram: Histogram | None, max_s: float | None, goes_on: bool
) -> Iterator[Line]:
    """The lines of the details panel for the lengths of ``what``, such as Waits.

    Args:
        what: the word for them.
        histogram: the lengths of those that ended; None: nothing to show.
        max_s: the longest one in seconds, None if it is not known.
        goes_on: whether another one lasts now.
    """
    if histogram is None:
        return
    half, most = (duration(percentile_s(histogram, percent, max_s)) for percent in (50, 99))
    missing = f", {exact(histogram.left_out)} found no room" if histogram.left_out else ""
    yield blank()
    ended = " that ended" if goes_on else ""
    yield heading(f"{what}{ended} by length", (f"  p50 {half}, p99 {most}{missing}", "dim"))
    all_bars = bars(histogram)
    highest = max(entry.count for entry in all_bars)
    for entry in all_bars:
        yield make_line(
            (f"  {duration(entry.from_s):>6} to {duration(entry.to_s):>6}  ", "dim"),
            (bar(entry.count / highest, _BAR_WIDTH), "waiting"),
            f" {exact(entry.count):>12}",
        )
