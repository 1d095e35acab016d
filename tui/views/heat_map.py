"""The lines of the heat map: rows of densities, the axis with the chosen spans, the cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from locktop.collector.analysis.timeline import counted_parts
from locktop.collector.model import CountedSpan, LaneState, TimeLine, Window
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.timeline import SHADES, shade, time_of_day
from locktop.collector.render.words.units import counted
from locktop.tui.views.cells import duration
from locktop.tui.views.row_groups import fit_label
from locktop.tui.views.styled_line import Line, Span, cut, make_line
from locktop.tui.views.timeline import CELLS_FROM, counted_axis

_WAIT_WIDTH = 6
_MAX_CALLERS = 12
#: In place of a stack: sums of counters have none.
_COUNTED_STACK = -1
_COUNTED_SAID = "  exact sums of counters; c: callers"
#: How many parts a second may have: the heights of a cell are 100, 50, 40 and 20 ms.
OFFSET_ROWS = (10, 20, 25, 50)


class ChosenSpan(Struct, frozen=True):
    """A span of time that the user chose."""

    from_ns: int
    to_ns: int
    locks: frozenset[int] = frozenset()  # the only locks that count; none: all

    @property
    def says(self) -> str:
        """The begin, the end and the length."""
        length = duration((self.to_ns - self.from_ns) / 1e9)
        return f"{time_of_day(self.from_ns)} + {length}"


def offset_rows(page: int) -> int:
    """Return into how many parts a second is divided on so many rows."""
    return max((count for count in OFFSET_ROWS if count <= page), default=OFFSET_ROWS[0])


def heat_row(
    name: str,
    sums: Sequence[int],
    most: int,
    count: int,
    columns: int = 1,
    fit_to: Callable[[str, int], str] = fit_label,
) -> Line:
    """A row of densities with its sum.

    Args:
        name: of the lock, the class of locks, the thread or the part of a second.
        sums: the nanoseconds waited in each cell.
        most: the largest sum of all rows.
        count: the characters of all cells together.
        columns: the characters of one cell.
        fit_to: brings the name to a width.
    """
    signs = "".join(shade(ns / most if most else 0.0) * columns for ns in sums).ljust(count)
    whole = sum(sums)
    text = duration(whole / 1e9) if whole else "-"
    return (
        ("  " + fit_to(name, CELLS_FROM - 3) + " ", "strong"),
        (signs, "waiting"),
        (f" {text:>{_WAIT_WIDTH}}", "text"),
    )


def heat_axis(
    window: Window,
    cursor: int,
    spans: Sequence[ChosenSpan],
    begin: int | None,
    counted: Sequence[CountedSpan] = (),
) -> Line:
    """The times above the cells, the cursor, and the chosen spans as A and B."""
    return _add_cursor(_signs(window, spans, begin, counted), cursor)


def _signs(
    window: Window,
    spans: Sequence[ChosenSpan],
    begin: int | None,
    counted: Sequence[CountedSpan] = (),
) -> str:
    signs = counted_axis(window, counted)
    for letter, span in zip("AB", spans, strict=False):
        if span.from_ns < window.to_ns and span.to_ns > window.from_ns:
            first, last = window.cell_at(span.from_ns), window.cell_at(span.to_ns - 1)
            signs[first : last + 1] = letter * (last + 1 - first)
    if begin is not None and window.from_ns <= begin < window.to_ns:
        signs[window.cell_at(begin)] = "["
    return "".join(signs)


def seconds_axis(
    first_s: int, seconds: int, columns: int, cursor: int, spans: Sequence[ChosenSpan], count: int
) -> Line:
    """The same for cells of whole seconds.

    Args:
        first_s: the first second, since 1970.
        seconds: number of seconds.
        columns: the characters of one cell.
        cursor: the number of the cell with the cursor.
        spans: the chosen spans.
        count: the characters of all cells together.
    """
    window = Window(
        from_ns=first_s * 10**9, to_ns=(first_s + seconds) * 10**9, count=seconds * columns
    )
    return _add_cursor(_signs(window, spans, None).ljust(count), cursor * columns)


def _add_cursor(text: str, cursor: int) -> Line:
    return make_line(
        (" " * CELLS_FROM + text[:cursor], "label"),
        ("▼", "key"),
        (text[cursor + 1 :] + f" {'WAITED':>{_WAIT_WIDTH}}", "label"),
    )


def spans_line(
    flags: Sequence[Span | str], spans: Sequence[ChosenSpan], begin: int | None, width: int
) -> Line:
    """The flags, the chosen spans, and the effect of the next key."""
    said: list[Span | str] = [" ", *flags]
    for letter, span in zip("AB", spans, strict=False):
        said += [(f"{letter} ", "key"), f"{span.says}  "]
    if begin is not None:
        said += [("from ", "label"), time_of_day(begin), ("  m ends the span here", "label")]
    elif not spans:
        said.append(("m begins a span, m again ends it; c shows its callers", "label"))
    elif len(spans) == 1:
        said.append(("c its callers; m begins the second span", "label"))
    else:
        said.append(("c callers of B; d compares", "label"))
    return cut(make_line(*said), width)


def scale(most: int) -> str:
    """Return what the densities mean: the largest sum of one cell."""
    if not most:
        return "no waits"
    return f"each cell “{SHADES}”: from no wait to {duration(most / 1e9)} of waits"


class CellSum(Struct):
    """The waits of one lock with one stack in a cell."""

    waited_ns: int = 0
    threads: int = 0  # 0: not known


def cell_callers(
    line: TimeLine, from_ns: int, to_ns: int, locks: Collection[int], tid: int
) -> list[tuple[tuple[int, int], CellSum]]:
    """Return by lock and stack what was waited in a cell, the longest first.

    Args:
        line: the threads.
        from_ns: the begin of the cell.
        to_ns: its end.
        locks: the only locks that count; none: all.
        tid: the only thread that counts; 0: all.
    """
    sums: dict[tuple[int, int], CellSum] = {}
    cell = Window(from_ns=from_ns, to_ns=max(to_ns, from_ns + 1), count=1)
    lanes = [lane for lane in line.lanes if tid in (0, lane.tid)]
    for span in [s for lane in lanes for s in lane.counted] if tid else line.counted:
        for _, (state, lock), ns in counted_parts(span, cell):
            if state is LaneState.WAITING and (not locks or lock in locks):
                sums.setdefault((lock, _COUNTED_STACK), CellSum()).waited_ns += ns
    for lane in lanes:
        met: set[tuple[int, int]] = set()
        in_sums = [s for s in lane.counted if s.from_ns < to_ns and s.to_ns > from_ns]
        for wait in lane.waits:
            record = wait.record
            if record.began_ns >= to_ns:
                break
            begin, end = max(from_ns, record.began_ns), min(to_ns, record.got_ns)
            part = end - begin
            part -= sum(max(0, min(end, s.to_ns) - max(begin, s.from_ns)) for s in in_sums)
            if part > 0 and not wait.idle and (not locks or record.lock in locks):
                key = record.lock, record.stack
                entry = sums.setdefault(key, CellSum())
                entry.waited_ns += part
                entry.threads += key not in met
                met.add(key)
    return sorted(sums.items(), key=lambda item: -item[1].waited_ns)


def cell_lines(
    entries: Sequence[tuple[tuple[int, int], CellSum]],
    from_ns: int,
    to_ns: int,
    index: SnapshotIndex,
) -> Iterator[Line]:
    """The cell under the cursor: the waits in it by lock and place, the longest first."""
    whole = sum(entry.waited_ns for _, entry in entries)
    yield make_line(
        (f" {time_of_day(from_ns)} + {duration((to_ns - from_ns) / 1e9)}  ", "label"),
        (f"{duration(whole / 1e9)} waited" if whole else "nobody waited", "waiting"),
        (_COUNTED_SAID if any(not entry.threads for _, entry in entries) else "", "label"),
    )
    for (lock, stack), entry in entries[:_MAX_CALLERS]:
        threads = counted(entry.threads, "thread") if entry.threads else "in all"
        where = index.stack_top(stack) or "no stack known"
        yield make_line(
            f" {duration(entry.waited_ns / 1e9):>6}",
            (f"  {threads}  ", "label"),
            (index.lock_name(lock) if lock else "which locks is not known", "strong"),
            (f"  {where}" if entry.threads else "", "where"),
        )
