"""The lines of the time line: lanes, the axis, and what the cursor is on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from rich.cells import cell_len

from locktop.collector.analysis.timeline import cells
from locktop.collector.model import (
    CountedSpan,
    Flow,
    Lane,
    LaneState,
    Notable,
    TimedWait,
    TimeLine,
    Window,
)
from locktop.collector.render.text.timeline import wait_sentence
from locktop.collector.render.words.blame import hand_over
from locktop.collector.render.words.plot import bar
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.timeline import (
    axis,
    digits_for,
    glyph,
    lock_letter,
    time_of_day,
    time_zone,
)
from locktop.tui.time_view import TimeView
from locktop.tui.views.cells import duration, fit_name, percent
from locktop.tui.views.detail_parts import stack_of
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line, unfolded

#: A mark of two cells and the name of the thread, before the cells of a lane.
_NAME_WIDTH = 13
CELLS_FROM = 2 + _NAME_WIDTH + 1
_WAIT_WIDTH = 6
#: Above a cell of sums from counters; and the cells of the bar of a reading.
COUNTED = "┄"
_BAR_WIDTH = 12
#: The text of a cell of sums, in place of its waits.
COUNTED_HINT = "exact sums of counters; there were too many waits to show: + zooms in to them"
#: From this width the time zone is named.
_ZONE_FROM = 100

STYLES: Mapping[LaneState, str] = {
    LaneState.WAITING: "waiting",
    LaneState.HOLDING: "holder",
    LaneState.RUNNING: "running",
    LaneState.IDLE: "dim",
    LaneState.SLEEPING: "dim",
    LaneState.UNKNOWN: "dim",
}


class LaneView(Struct, frozen=True):
    """The common part of all lanes of one drawing."""

    window: Window
    letters: Mapping[int, str]  # of locks
    shows_letters: bool
    marks: Mapping[int, str]  # by tid: the parts of the arrow from who released to who was woken
    #: The cells of each lane by tid, as far as they were computed.
    cells_of_lanes: dict[int, list[dict[tuple[LaneState, int], int]]]


def cell_count(width: int) -> int:
    """Return how many cells a lane has on a screen of that width."""
    return max(10, width - CELLS_FROM - _WAIT_WIDTH - 1)


def lane_line(lane: Lane, name: str, view: LaneView) -> Line:
    """A lane as a line: the mark, the name, the cells, and the time waited in them."""
    window = view.window
    parts = view.cells_of_lanes.get(lane.tid)
    if parts is None:
        parts = view.cells_of_lanes[lane.tid] = cells(lane.spans, window, lane.counted)
    spans: list[Span] = []
    waited = 0
    for number, cell in enumerate(parts):
        cell_ns = window.edge_ns(number + 1) - window.edge_ns(number)
        if view.shows_letters:
            sign, state = lock_letter(cell, cell_ns, view.letters)
        else:
            sign, state = glyph(cell, cell_ns)
        spans.append((sign, STYLES[state]))
        waited += sum(ns for (lane_state, _), ns in cell.items() if lane_state is LaneState.WAITING)
    sum_text = duration(waited / 1e9) if waited else "-"
    mark = view.marks.get(lane.tid, "  ")
    return (
        (mark, "key"),
        (fit_name(name, _NAME_WIDTH) + " ", "strong"),
        *_join(spans),
        (f" {sum_text:>{_WAIT_WIDTH}}", "text"),
    )


def _join(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for text, style in spans:
        if joined and (joined[-1][1] == style or text == " "):
            joined[-1] = (joined[-1][0] + text, joined[-1][1])
        else:
            joined.append((text, style))
    return joined


def counted_axis(window: Window, counted: Sequence[CountedSpan]) -> list[str]:
    """The times above the cells, with a sign between them above the cells of counters."""
    signs = list(axis(window))
    for span in counted:
        for cell, ns in window.parts(span.from_ns, span.to_ns):
            is_most = 2 * ns >= window.edge_ns(cell + 1) - window.edge_ns(cell)
            if signs[cell] == " " and is_most:
                signs[cell] = COUNTED
    return signs


def axis_line(
    window: Window,
    cursor: int,
    notables: Sequence[Notable],
    counted: Sequence[CountedSpan] = (),
) -> Line:
    """The times above the cells, with a mark above the cursor, and ``!`` for alerts and marks."""
    signs = counted_axis(window, counted)
    for notable in notables:
        if window.from_ns <= notable.time_ns <= window.to_ns:
            signs[window.cell_at(notable.time_ns)] = "!"
    text = "".join(signs)
    before = " " * CELLS_FROM
    return make_line(
        (before + text[:cursor], "label"),
        ("▼", "key"),
        (text[cursor + 1 :] + f" {'WAITED':>{_WAIT_WIDTH}}", "label"),
    )


def position_line(
    what: str,
    process: str,
    view: TimeView,
    count: int,
    width: int,
    *,
    is_over: bool,
    read_part: float | None = None,
) -> Line:
    """The first line: the process, the visible span, the length of a cell, and the cursor.

    In a small width some parts give way. The first is the length of a cell, then come the process
    and the end of the span.

    Args:
        what: the name of the screen.
        process: name and pid.
        view: the visible span and the cursor.
        count: the visible cells.
        width: characters.
        is_over: whether the past has an end, because nothing new comes.
        read_part: the part 0..1 that is read, while locktop reads; None: nothing is being read.
    """
    cell_ns = max(1, view.span_ns // count)
    digits = max(3, digits_for(cell_ns))
    behind_s = (view.last_ns - view.to_ns) / 1e9
    newest = "the end" if is_over else "now"
    end = newest if behind_s <= 0 else f"{duration(behind_s)} before {newest}"
    head: list[Span | str] = [(f" {process}", "strong")]
    span: list[Span | str] = [
        (f"  {what} ", "title"), (f" {duration(view.span_ns / 1e9)}", "strong"),
        (f" up to {end}", "label"),
    ]  # fmt: skip
    cell: list[Span | str] = [(", ", "label"), duration(cell_ns / 1e9), (" a cell", "label")]
    cursor: list[Span | str] = [("  ▼ ", "key"), (time_of_day(view.at_ns, digits), "strong")]
    if width >= _ZONE_FROM:
        cursor.append((f" {time_zone(view.at_ns)}", "label"))
    progress = reading_bar(read_part) if read_part is not None else []
    fitting = (
        [*head, *span, *cell, *cursor, *progress],
        [*head, *span, *cursor, *progress],
        [*span, *cursor, *progress],
        [*span[:-1], *cursor, *progress],
        [*span[:-1], *progress],
    )
    lines = [make_line(*spans) for spans in fitting]
    return cut(
        next((line for line in lines if cell_len(line_text(line)) <= width), lines[-1]), width
    )


def reading_bar(part: float) -> list[Span | str]:
    """The part 0..1 that is read, as a bar: `` reading ━━━━━━       50 %``."""
    return [
        ("  reading ", "label"), (bar(part, _BAR_WIDTH), "running"), (f" {part:4.0%}", "label"),
    ]  # fmt: skip


def losses(time_line: TimeLine) -> list[Span | str]:
    """Return flags with the reasons that a picture of the past is less than exact."""
    spans: list[Span | str] = []
    if time_line.is_sampled:
        spans += [(" estimates from samples ", "flag"), " "]
    if time_line.is_coarse:
        spans += [(" few scans yet ", "flag"), " "]
    if time_line.counted:
        spans += [(f" {COUNTED} sums, no single waits ", "flag"), " "]
    if time_line.lost_records:
        spans += [(f" {time_line.lost_records} records lost ", "flag"), " "]
    return spans


def legend_line(
    time_line: TimeLine, index: SnapshotIndex, letters: Mapping[int, str], width: int
) -> Line:
    """The locks with their letters, the most waited first; or why there is none."""
    spans = losses(time_line)
    if not letters:
        return cut(make_line(*spans, (" nobody waited for a lock", "label")), width)
    spans.append((" Locks  ", "label"))
    for lock, letter in letters.items():
        spans += [(letter, "key"), (f" {index.lock_name(lock)}  ", "text")]
    return cut(make_line(*spans), width)


SIGNS: Line = make_line(
    ("▁▄█", "waiting"), (" waits  ", "label"), ("═~", "holder"), (" holds, in part  ", "label"),
    ("─", "running"), (" runs  ", "label"), ("·", "dim"), (" idle  ", "label"),
    ("-", "dim"), (" sleeps", "label"),
)  # fmt: skip


def cell_line(lane: Lane, view: TimeView, window: Window, index: SnapshotIndex) -> Line:
    """The exact sums of the cell under the cursor."""
    number = window.cell_at(view.at_ns)
    begin, end = window.edge_ns(number), window.edge_ns(number + 1)
    cell = Window(from_ns=begin, to_ns=max(end, begin + 1), count=1)
    parts = cells(lane.spans, cell, lane.counted)[0]
    digits = min(9, digits_for(max(1, end - begin)) + 3)
    spans: list[Span | str] = [
        (f" {time_of_day(begin, digits)} ", "label"), (index.thread_name(lane.tid), "strong"), " ",
    ]  # fmt: skip
    for (state, lock), ns in sorted(parts.items(), key=lambda item: -item[1]):
        if state is LaneState.UNKNOWN:
            continue
        name = f" {index.lock_name(lock)}" if lock else ""
        share = percent(ns / max(1, end - begin))
        spans += [
            (f" {state.value}{name}", STYLES[state]), f" {duration(ns / 1e9)} {share.strip()} ",
        ]  # fmt: skip
    return make_line(*spans)


def wait_lines(
    wait: TimedWait | None,
    holders: Sequence[str],
    woken_by: Flow | None,
    woke: Sequence[Flow],
    index: SnapshotIndex,
    *,
    is_counted: bool = False,
) -> Iterator[Line]:
    """The wait under the cursor: who had the lock meanwhile, who gave it, and the stack.

    Args:
        wait: None: none is known.
        holders: sentences about who had the lock.
        woken_by: who gave the lock.
        woke: who got it next.
        index: has the names.
        is_counted: whether the cell has the sums of counters.
    """
    if wait is None:
        said = COUNTED_HINT if is_counted else "no wait here; n goes to the next one of this thread"
        yield make_line((f" {said}", "label"))
        return
    record = wait.record
    yield make_line((f" {wait_sentence(wait, index)}", "waiting" if not wait.idle else "dim"))
    for sentence in holders:
        yield make_line((f" {sentence}", "holder"))
    if record.hold_ns:
        own = duration(record.hold_ns / 1e9)
        yield make_line((f" then had the lock itself for {own}", "holder"))
    if woken_by is not None:
        yield _woken_by_line(woken_by, index)
    elif record.holder and not wait.idle and not holders:
        who = (index.thread_name(record.holder), "strong")
        yield make_line((" f ", "key"), who, " had the lock when the wait began")
    for flow in woke:
        gap_s = max(0, flow.woken_ns - record.end_ns) / 1e9
        yield make_line(
            (" F ", "key"), ("woke ", "label"), (index.thread_name(flow.to_tid), "strong"),
            f" {duration(gap_s)} after the release at {time_of_day(record.end_ns, 6)}",
        )  # fmt: skip
    yield from unfolded(stack_of(index, record.stack, record.site))


def _woken_by_line(flow: Flow, index: SnapshotIndex) -> Line:
    who = (index.thread_name(flow.from_tid), "strong")
    if flow.released_ns is None:
        return make_line((" f ", "key"), who, " had the lock; its release is not recorded")
    gap_s = max(0, flow.woken_ns - flow.released_ns) / 1e9
    _, deed = hand_over(index.lock_kind(flow.lock))
    return make_line(
        (" f ", "key"), (f"{deed} by ", "label"), who,
        f" at {time_of_day(flow.released_ns, 6)}, {duration(gap_s)} before",
    )  # fmt: skip


def arrow_marks(order: Sequence[int], from_tid: int, to_tid: int) -> dict[int, str]:
    """Return the marks before the lanes that make an arrow from one thread to another.

    Args:
        order: the tids from the top.
        from_tid: who released.
        to_tid: who was woken.
    """
    if from_tid not in order or to_tid not in order or from_tid == to_tid:
        return {}
    begin, end = order.index(from_tid), order.index(to_tid)
    marks = {order[number]: "│ " for number in range(min(begin, end) + 1, max(begin, end))}
    marks[from_tid] = "┌─" if begin < end else "└─"
    marks[to_tid] = "└▶" if begin < end else "┌▶"
    return marks
