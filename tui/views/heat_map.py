"""The lines of the heat map: rows of densities, the axis with the chosen spans, the cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from locktop.collector.model import Lane, Window
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.timeline import SHADES, axis, shade, time_of_day
from locktop.tui.views.cells import duration, fit_name
from locktop.tui.views.styled_line import Line, Span, cut, make_line
from locktop.tui.views.timeline import CELLS_FROM

_WAIT_WIDTH = 6
_MAX_CALLERS = 12
#: How many parts a second may have: the heights of a cell are 100, 50, 40 and 20 ms.
OFFSET_ROWS = (10, 20, 25, 50)


class ChosenSpan(Struct, frozen=True):
    """A span of time that the user chose."""

    from_ns: int
    to_ns: int
    lock: int = 0  # the only lock that counts; 0: all

    @property
    def says(self) -> str:
        """The begin, the end and the length."""
        length = duration((self.to_ns - self.from_ns) / 1e9)
        return f"{time_of_day(self.from_ns)} + {length}"


def offset_rows(page: int) -> int:
    """Return into how many parts a second is divided on so many rows."""
    return max((count for count in OFFSET_ROWS if count <= page), default=OFFSET_ROWS[0])


def heat_row(name: str, sums: Sequence[int], most: int, count: int, columns: int = 1) -> Line:
    """A row of densities with its sum.

    Args:
        name: of the lock, the thread or the part of a second.
        sums: the nanoseconds waited in each cell.
        most: the largest sum of all rows.
        count: the characters of all cells together.
        columns: the characters of one cell.
    """
    signs = "".join(shade(ns / most if most else 0.0) * columns for ns in sums).ljust(count)
    whole = sum(sums)
    text = duration(whole / 1e9) if whole else "-"
    return (
        ("  " + fit_name(name, CELLS_FROM - 3) + " ", "strong"),
        (signs, "waiting"),
        (f" {text:>{_WAIT_WIDTH}}", "text"),
    )


def heat_axis(window: Window, cursor: int, spans: Sequence[ChosenSpan], begin: int | None) -> Line:
    """The times above the cells, the cursor, and the chosen spans as A and B."""
    return _add_cursor(_signs(window, spans, begin), cursor)


def _signs(window: Window, spans: Sequence[ChosenSpan], begin: int | None) -> str:
    signs = list(axis(window))
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
    return f"none to most: “{SHADES}” {duration(most / 1e9)} in a cell" if most else "no waits"


class CellSum(Struct):
    """The waits of one lock with one stack in a cell."""

    waited_ns: int = 0
    threads: int = 0


def cell_callers(
    lanes: Sequence[Lane], from_ns: int, to_ns: int, lock: int, tid: int
) -> list[tuple[tuple[int, int], CellSum]]:
    """Return by lock and stack what was waited in a cell, the longest first.

    Args:
        lanes: the threads.
        from_ns: the begin of the cell.
        to_ns: its end.
        lock: the only lock that counts; 0: all.
        tid: the only thread that counts; 0: all.
    """
    sums: dict[tuple[int, int], CellSum] = {}
    for lane in lanes:
        if tid not in (0, lane.tid):
            continue
        met: set[tuple[int, int]] = set()
        for wait in lane.waits:
            record = wait.record
            if record.began_ns >= to_ns:
                break
            part = min(to_ns, record.got_ns) - max(from_ns, record.began_ns)
            if part > 0 and not wait.idle and lock in (0, record.lock):
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
    )
    for (lock, stack), entry in entries[:_MAX_CALLERS]:
        where = index.stack_top(stack) or "no stack known"
        plural = "s" * (entry.threads != 1)
        yield make_line(
            f" {duration(entry.waited_ns / 1e9):>6}",
            (f"  {entry.threads} thread{plural}  ", "label"),
            (index.lock_name(lock), "strong"),
            (f"  {where}", "where"),
        )
