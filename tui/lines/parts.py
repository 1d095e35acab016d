"""Pieces that the details of locks, threads and deadlocks share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from locktop.collector.model import Event, Frame
from locktop.tui.lines.figures import duration
from locktop.tui.lines.picture import Picture, source_line
from locktop.tui.lines.runs import Line, Row, Run, say

LABEL_WIDTH = 11
_FUNCTION_WIDTH = 28


def labelled(label: str, *runs: Run | str) -> Row:
    """A figure with its name before it, in a column."""
    return Row(say((f" {label}".ljust(LABEL_WIDTH), "label"), *runs))


def heading(text: str, *more: Run | str) -> Row:
    """The title of a part."""
    return Row(say((f" {text}", "title"), *more))


def blank() -> Row:
    """An empty line."""
    return Row(())


def stack_lines(frames: Iterable[Frame], indent: int = 3) -> Iterator[Row]:
    """A stack, innermost frame first, one line each."""
    for number, frame in enumerate(frames):
        yield Row(_frame(number, frame, indent))


def _frame(number: int, frame: Frame, indent: int) -> Line:
    before = (f"{' ' * indent}{number:>2} ", "dim")
    if not frame.function:
        unnamed = f"{frame.module}+{frame.offset:#x}" if frame.module else f"{frame.address:#x}"
        return say(before, (unnamed, "dim"))
    function = frame.function
    if len(function) < _FUNCTION_WIDTH:
        function = function.ljust(_FUNCTION_WIDTH)
    return say(before, function, (" " + source_line(frame), "where"))


def stack_of(picture: Picture, stack_id: int, site: int) -> Iterator[Row]:
    """The stack, or what is known in place of it."""
    frames = picture.stack(stack_id)
    if frames:
        yield from stack_lines(frames)
    elif site:
        yield Row(say("    ", (picture.site(site), "where"), ("  (no stack at this level)", "dim")))
    else:
        yield Row(say(("    no stack is known", "dim")))


def event_lines(picture: Picture, events: Iterable[Event], show_lock: bool) -> Iterator[Row]:
    """Waits that ended, newest first, one line each."""
    for event in events:
        what = picture.lock_name(event.lock) if show_lock else picture.thread_name(event.tid)
        said: list[Run | str] = [
            (f"  {duration(event.ago_s):>6} ago ", "dim"),
            (what, "strong"),
            f" waited {duration(event.wait_s)}",
        ]
        if event.timed_out:
            said.append((", gave up", "waiting"))
        elif event.hold_s is not None:
            said.append(f", held {duration(event.hold_s)}")
        if event.holder:
            said += [", behind ", (picture.thread_name(event.holder), "holder")]
        top = picture.stack_top(event.stack) or picture.site(event.site)
        yield Row(say(*said, "  ", (top, "where")))


def listed(names: list[str], most: int) -> str:
    """The first ``most`` names and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
