"""Compares the waits before the user's last mark with those since: where is more waited now?"""

from __future__ import annotations

import asyncio

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.moments import Moments
from locktop.collector.render.profiles.call_tree_difference import DifferenceNode, difference
from locktop.tui.past import Past
from locktop.tui.views.past_flag import clock_text, span_text
from locktop.tui.widgets.list_screen import ListScreen

#: Records that a comparison reads at most.
_MAX_RECORDS = 100_000


class MarkComparison:
    """Opens the difference of two spans: up to the mark, and since the mark.

    Both are of equal length, unless the memory begins later.
    """

    def __init__(self, past: Past, screen: ListScreen) -> None:
        """Args:
        past: has the marks and the moment on the screen.
        screen: has the messages and the screen above.
        """
        self._past = past
        self._screen = screen

    def open(self, now_ns: int) -> None:
        """Compare at the moment on the screen; ``now_ns``: the time of now."""
        until_ns = self._past.time_ns if self._past.time_ns is not None else now_ns
        mark = self._mark_before(until_ns)
        moments = self._past.moments
        if moments is None:
            self._screen.show_message("Nothing is kept: --history 0 says so.")
        elif mark is None:
            self._screen.show_message("There is no mark to compare with: m marks a moment.")
        else:
            self._screen.start(lambda: self._show(moments, mark, until_ns), "comparison")

    def _mark_before(self, until_ns: int) -> Notable | None:
        marks = [
            notable
            for notable in self._past.notables()
            if notable.kind is NotableKind.MARK and notable.time_ns < until_ns
        ]
        return marks[-1] if marks else None

    async def _show(self, moments: Moments, mark: Notable, until_ns: int) -> None:
        from locktop.tui.screens.difference import DifferenceScreen

        root, lost, begin_ns = await asyncio.to_thread(_difference, moments, mark.time_ns, until_ns)
        since_ns, before_ns = until_ns - mark.time_ns, mark.time_ns - begin_ns
        # Less may be kept from before.
        long = "as long" if before_ns == since_ns else span_text(before_ns)
        when = f"since {mark.text} at {clock_text(mark.time_ns)}"
        title = f"B {span_text(since_ns)} {when}, minus A {long} before"
        if self._screen.app.screen is self._screen:
            self._screen.app.push_screen(DifferenceScreen(title, root, lost))


def _difference(
    moments: Moments, mark_ns: int, until_ns: int
) -> tuple[DifferenceNode, tuple[int, int], int]:
    """Return the joined trees of both spans, the records lost of each, and the first begin.

    Raises LocktopError if there is nothing before the mark.
    """
    from locktop.collector.recording.time_lines import TimeLineReader

    times = moments.times_ns()
    if not times or times[0] >= mark_ns:
        raise LocktopError("Nothing is kept from before the mark: mark a later moment.")
    reader = TimeLineReader(moments, _MAX_RECORDS)
    begin_ns = max(times[0], 2 * mark_ns - until_ns)
    before = reader.read_span(begin_ns, mark_ns)
    since = reader.read_span(mark_ns, until_ns)
    return difference(before, since), (before.lost_events, since.lost_events), begin_ns
