"""Compares the time before the user's last mark with that since: what changed?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.diff import sentences, sides
from locktop.collector.extensions.diff.compare import compare
from locktop.collector.model import Lock, Notable, NotableKind, Snapshot
from locktop.collector.recording.moments import Moments
from locktop.collector.render.profiles.call_tree_difference import DifferenceNode, difference
from locktop.tui.screens.view_host import ViewHost
from locktop.tui.views.past_flag import clock_text, span_text
from locktop.tui.views.styled_line import line_text, make_line
from locktop.tui.views.timeline import COUNTED, reading_bar

if TYPE_CHECKING:
    from locktop.collector.recording.time_lines import TimeLineReader

#: Seconds between two drawings of the bar of a reading.
_BAR_S = 0.25

#: Records of one span that a comparison reads, about twice as many at most. Where a span has more,
#: the differences of counters between two snapshots take their place.
_MAX_RECORDS = 10_000
_SUMS = f"{COUNTED} Too many waits to read each: the figures are exact sums of counters."
#: Seconds that the bar stays if nothing replaces it.
_LONG_S = 600.0


class _Difference(Struct, frozen=True):
    """The difference of two spans."""

    root: DifferenceNode  # the joined call trees
    lost: tuple[int, int]  # records of each span
    begin_ns: int  # of the first span
    sentences: Sequence[str]  # what `locktop diff` says
    is_counted: bool  # a span has sums of counters in place of records


class DiffView:
    """Opens the difference of two spans: up to the mark, and since the mark. See View.

    Both are of equal length, unless the memory begins later.
    """

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host
        self._reader: TimeLineReader | None = None  # keeps what it read of the scans
        self._read_part = 0.0

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        past, monitor = self._host.past, self._host.monitor
        until_ns = past.time_ns if past.time_ns is not None else time.time_ns()
        mark = self._mark_before(until_ns)
        moments = past.moments
        if moments is None:
            monitor.show_message("Nothing is kept: --history 0 says so.")
        elif mark is None:
            monitor.show_message("There is no mark to compare with: m marks a moment.")
        else:
            monitor.start(lambda: self._show(moments, mark, until_ns), "comparison")

    def tick(self) -> None:
        pass

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return snapshot

    def _mark_before(self, until_ns: int) -> Notable | None:
        marks = [
            notable
            for notable in self._host.past.notables()
            if notable.kind is NotableKind.MARK and notable.time_ns < until_ns
        ]
        return marks[-1] if marks else None

    async def _show(self, moments: Moments, mark: Notable, until_ns: int) -> None:
        from locktop.tui.screens.difference import DifferenceScreen

        result = await self._read(moments, mark.time_ns, until_ns)
        since_ns, before_ns = until_ns - mark.time_ns, mark.time_ns - result.begin_ns
        # Less may be kept from before.
        long = "as long" if before_ns == since_ns else span_text(before_ns)
        when = f"since {mark.text} at {clock_text(mark.time_ns)}"
        title = f"B {span_text(since_ns)} {when}, minus A {long} before"
        sentences = (*([_SUMS] if result.is_counted else []), *result.sentences)
        if self._host.top() is self._host.monitor:
            screen = DifferenceScreen(title, result.root, result.lost, sentences)
            self._host.show(screen, lambda: None)

    async def _read(self, moments: Moments, mark_ns: int, until_ns: int) -> _Difference:
        """Read both spans. A bar in the last line shows how far the reading is."""
        from locktop.collector.recording.time_lines import TimeLineReader

        self._reader = self._reader or TimeLineReader(moments, _MAX_RECORDS, takes_counters=True)
        self._read_part = 0.0
        self._show_bar()
        bar = self._host.monitor.set_interval(_BAR_S, self._show_bar)
        try:
            return await asyncio.to_thread(
                _difference, self._reader, moments, mark_ns, until_ns, self._take_part
            )
        finally:
            bar.stop()
            self._host.monitor.footer.clear()

    def _take_part(self, part: float) -> None:
        """Called in the thread that reads."""
        self._read_part = part

    def _show_bar(self) -> None:
        if self._host.top() is self._host.monitor:
            text = line_text(make_line(*reading_bar(self._read_part))).strip()
            self._host.monitor.show_message(text, seconds=_LONG_S)


def _difference(
    reader: TimeLineReader,
    moments: Moments,
    mark_ns: int,
    until_ns: int,
    on_part: Callable[[float], None],
) -> _Difference:
    """Return the difference. Raises LocktopError if there is nothing before the mark."""
    times = moments.times_ns()
    if not times or times[0] >= mark_ns:
        raise LocktopError("Nothing is kept from before the mark: mark a later moment.")
    begin_ns = max(times[0], 2 * mark_ns - until_ns)
    before = reader.read_span(begin_ns, mark_ns, step=lambda part: on_part(part / 2))
    since = reader.read_span(mark_ns, until_ns, step=lambda part: on_part((1 + part) / 2))
    return _Difference(
        root=difference(before, since),
        lost=(before.lost_events, since.lost_events),
        begin_ns=begin_ns,
        sentences=_sentences(moments, begin_ns, mark_ns, until_ns),
        is_counted=before.session_s is not None or since.session_s is not None,
    )


def _sentences(moments: Moments, begin_ns: int, mark_ns: int, until_ns: int) -> Sequence[str]:
    """Return what changed of the locks; nothing if a span has one snapshot alone."""
    try:
        before = sides.side_of_span(moments, begin_ns, mark_ns, "before the mark")
        since = sides.side_of_span(moments, mark_ns, until_ns, "since the mark")
    except LocktopError:
        return ()
    return tuple(sentences.headlines(compare(before, since)))
