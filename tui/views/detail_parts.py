"""Lines that the details of locks, threads and deadlocks share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from locktop.collector.model import Event, Frame
from locktop.collector.render.words.foreign_code import owner_of, python_frame
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import file_and_line, short_location
from locktop.tui.views.cells import duration
from locktop.tui.views.former_holder import seconds_since_end
from locktop.tui.views.styled_line import FoldedLines, Line, Span, make_line

LABEL_WIDTH = 11
_FUNCTION_WIDTH = 28
#: As many are kept of each lock and thread, see past_events.py.
MAX_EVENTS = 12
#: Frames of a stack whose source lines are shown, the innermost ones of the program.
_MAX_SOURCES = 3


def labelled(label: str, *spans: Span | str) -> Line:
    """A line with a label in its first column."""
    return make_line((f" {label}".ljust(LABEL_WIDTH), "label"), *spans)


def heading(text: str, *more: Span | str) -> Line:
    """The title of a section."""
    return make_line((f" {text}", "title"), *more)


def blank() -> Line:
    """An empty line."""
    return ()


def stack_of(index: SnapshotIndex, stack_id: int, site: int) -> Iterator[Line]:
    """A stack, innermost frame first, one line each, or what is known in place of it."""
    frames = index.stack(stack_id)
    if frames:
        yield from frame_lines(index, frames)
    elif site:
        yield make_line("    ", (index.site(site), "where"), ("  (no stack at this level)", "dim"))
    else:
        yield make_line(("    no stack is known", "dim"))


def frame_lines(index: SnapshotIndex, frames: Sequence[Frame]) -> Iterator[Line]:
    """Frames, one line each.

    Several in a row that the program did not write are one line, which has them inside.
    """
    numbered = list(enumerate(frames))
    with_source = set(islice(_source_numbers(index, numbered), _MAX_SOURCES))
    runs = [
        (
            owner,
            [
                _frame(number, frame, index if number in with_source else None)
                for number, frame in run
            ],
        )
        for owner, run in groupby(numbered, lambda pair: owner_of(pair[1]))
    ]
    is_own = any(not owner for owner, _ in runs)
    for owner, lines in runs:
        # Without any frame of the program, those of the library are all there is to read.
        if owner and len(lines) > 1 and is_own:
            text = f"      … {len(lines)} frames of {owner}"
            yield FoldedLines(make_line((text, "dim")), lines)
        else:
            yield from lines


def _source_numbers(index: SnapshotIndex, numbered: list[tuple[int, Frame]]) -> Iterator[int]:
    """The numbers of the program's own frames whose source lines are known."""
    for number, frame in numbered:
        if not owner_of(frame) and index.source_line(frame.path, frame.line):
            yield number


def _frame(number: int, frame: Frame, index: SnapshotIndex | None) -> Line:
    """A frame. On the whole screen the line of the source file stands below."""
    line = _frame_line(number, frame)
    source = index.source_line(frame.path, frame.line) if index is not None else ""
    if not source:
        return line
    return FoldedLines(line, (line, make_line((f"{frame.line:>12} │ ", "dim"), source)))


def _frame_line(number: int, frame: Frame) -> Line:
    before = (f"{number:>5} ", "dim")
    if not frame.function:
        return make_line(before, (short_location(frame), "dim"))
    function = frame.function
    if len(function) < _FUNCTION_WIDTH:
        function = function.ljust(_FUNCTION_WIDTH)
    inlined = (" (inlined)", "dim") if frame.inlined else ""
    return make_line(before, function, (" " + file_and_line(frame), "where"), inlined)


def program_location(index: SnapshotIndex, stack_id: int) -> str:
    """Where the program is in a stack: of a Python program the function in Python, "" unknown."""
    frame = python_frame(index.stack(stack_id))
    return short_location(frame) if frame is not None else index.stack_top(stack_id)


def latest_events(index: SnapshotIndex, events: Sequence[Event], show_lock: bool) -> Iterator[Line]:
    """The latest events of a lock, or with ``show_lock`` of a thread, one line each.

    An event is a wait that ended, or at some levels a hold without a wait. A line begins with the
    time since the event ended. The last to end comes first.
    """
    if not events:
        return
    yield blank()
    yield heading("Latest waits" if all(map(_has_waited, events)) else "Latest waits and holds")
    for event in events[:MAX_EVENTS]:
        yield _event(index, event, show_lock)


def _has_waited(event: Event) -> bool:
    return event.wait_s > 0 or event.timed_out


def _event(index: SnapshotIndex, event: Event, show_lock: bool) -> Line:
    what = index.lock_name(event.lock) if show_lock else index.thread_name(event.tid)
    spans: list[Span | str] = [
        (f"  {duration(seconds_since_end(event)):>6} ago ", "dim"),
        (what, "strong"),
        f" waited {duration(event.wait_s)}" if _has_waited(event) else " did not wait",
    ]
    if event.timed_out:
        spans.append((", gave up", "waiting"))
    elif event.hold_s is not None:
        spans.append(f", held {duration(event.hold_s)}")
    if event.holder:
        spans += [", behind ", (index.thread_name(event.holder), "holder")]
    top = index.stack_top(event.stack) or index.site(event.site)
    return make_line(*spans, "  ", (top, "where"))
