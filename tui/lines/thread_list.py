"""The list of threads: its columns and its orders."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import CONTENTION_KINDS, Thread, ThreadState
from locktop.tui.lines.figures import bar, count, duration, fit_right, percent
from locktop.tui.lines.order import Order
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.shorten import fit_middle, place_in
from locktop.tui.lines.table import Cell, Column

_STATE_RANK = {
    ThreadState.WAITING: 0,
    ThreadState.RUNNING: 2,
    ThreadState.RUNNABLE: 2,
    ThreadState.OTHER: 3,
    ThreadState.IDLE: 3,
}

_STATE_STYLE = {
    ThreadState.WAITING: "waiting",
    ThreadState.RUNNING: "running",
    ThreadState.RUNNABLE: "running",
    ThreadState.OTHER: "text",
    ThreadState.IDLE: "text",
}

#: A wait this long is a matter of its own; a shorter one is one of many.
_LONG_WAIT_S = 1.0
#: Of the last interval: from here on a thread counts as one that contends.
_SOME_SHARE = 0.05

_PLACE_WIDTH = 24

#: The orders in the order of the key; each with the title of its column.
ORDERS: tuple[Order[Thread], ...] = (
    Order("state", "STATE", lambda thread: _by_state(thread)),
    Order("wait", "WAITED", lambda thread: (-contention_wait(thread), thread.tid)),
    Order("share", "WAIT%", lambda thread: (-round(thread.wait_share, 2), thread.tid)),
    Order("cpu", "CPU%", lambda thread: (-round(thread.cpu_share, 2), -thread.cpu_s, thread.tid)),
    Order("name", "THREAD", lambda thread: (thread.name.lower(), thread.tid)),
)


def _by_state(thread: Thread) -> tuple[float, ...]:
    """Who is stuck first, the longest first; then who waits most; the idle last.

    Short waits come and go between two looks, so they count by their share of the last
    interval: by the state of the moment the list would never be still.
    """
    wait = thread.waiting_for
    rank, since = float(_STATE_RANK[thread.state]), 0.0
    if is_idle(thread):
        rank = 4.0
    elif wait is not None and thread.state is ThreadState.WAITING and wait.for_s >= _LONG_WAIT_S:
        rank, since = 0.0, -wait.for_s
    elif thread.state is ThreadState.WAITING or thread.wait_share >= _SOME_SHARE:
        rank = 1.0
    return (rank, since, -round(thread.wait_share, 1), -round(thread.cpu_share, 1), thread.tid)


def mark(picture: Picture, thread: Thread) -> Cell:
    """The one character before a thread: ! in a deadlock, * waiting for a lock."""
    if thread.tid in picture.stuck_threads:
        return "!", "stuck"
    if thread.state is ThreadState.WAITING:
        return "*", "waiting"
    return " ", "text"


def columns(picture: Picture) -> tuple[Column[Thread], ...]:
    """All columns, in order from the left; the narrow screen drops some."""
    return (
        Column("THREAD", 15, lambda thread: _name(picture, thread), fit_middle),
        _figure("TID", 7, lambda thread: str(thread.tid), 90),
        Column("STATE", 8, lambda thread: _state(picture, thread)),
        Column(
            "WAITS FOR",
            14,
            lambda thread: _waits_for(picture, thread),
            fit_middle,
            grow=3,
            limit=36,
        ),
        _figure("SINCE", 6, _since),
        Column(
            "HELD BY", 12, lambda thread: _held_by(picture, thread), fit_middle, grow=2, limit=19
        ),
        _figure("WAIT%", 5, lambda thread: picture.counted(percent(thread.wait_share))),
        Column("", 6, lambda thread: (bar(thread.wait_share, 6), "waiting")),
        _figure("CPU%", 4, lambda thread: picture.lately(percent(thread.cpu_share)), 96),
        Column("HOLDS", 5, _holds, place=fit_right, from_width=104),
        _figure("WAITED", 6, lambda thread: duration(contention_wait(thread)), 112),
        _figure("CONTEND", 7, lambda thread: count(thread.contended), 120),
        Column("AT", _PLACE_WIDTH, lambda thread: _where(picture, thread), grow=4, from_width=132),
    )


def _figure(
    title: str, width: int, text: Callable[[Thread], str], from_width: int = 0
) -> Column[Thread]:
    """A column of figures, grey for a thread that only waits for work."""
    return Column(
        title,
        width,
        lambda thread: (text(thread), _quiet(thread)),
        fit_right,
        from_width=from_width,
    )


def contention_wait(thread: Thread) -> float:
    """Seconds that the thread waited for locks which somebody held, in all."""
    return sum(seconds for kind, seconds in thread.wait_s.items() if kind in CONTENTION_KINDS)


def state_word(picture: Picture, thread: Thread) -> str:
    """What the thread does, in one word."""
    if thread.alive and thread.state is ThreadState.IDLE and (thread.holds or picture.dormant):
        # Others may wait for it, or it for a lock: not what is said of a thread without work.
        return "asleep" if thread.waiting_for is None else thread.state.value
    return thread.state.value if thread.alive else "ended"


def is_idle(thread: Thread) -> bool:
    """Whether it only waits for work.

    One that sleeps while it holds a lock does not, nor one that lately waited for locks.
    """
    if not thread.alive:  # but what a killed process was stuck on stays to be seen
        return thread.state is not ThreadState.WAITING
    return thread.state is ThreadState.IDLE and not thread.holds and thread.wait_share < _SOME_SHARE


def _quiet(thread: Thread) -> str:
    return "dim" if is_idle(thread) else "text"


def _where(picture: Picture, thread: Thread) -> Cell:
    frame = picture.wait_frame(thread)
    text = place_in(frame, _PLACE_WIDTH) if frame is not None else ""
    return text, "dim" if _quiet(thread) == "dim" else "where"


def _name(picture: Picture, thread: Thread) -> Cell:
    if thread.tid in picture.stuck_threads:
        return picture.thread_name(thread.tid), "stuck"
    return picture.thread_name(thread.tid), "dim" if _quiet(thread) == "dim" else "strong"


def _state(picture: Picture, thread: Thread) -> Cell:
    return state_word(picture, thread), "dim" if is_idle(thread) else _STATE_STYLE[thread.state]


def _waits_for(picture: Picture, thread: Thread) -> Cell:
    wait = thread.waiting_for
    if wait is None:
        return "", "text"
    return picture.lock_name(wait.lock), "dim" if _quiet(thread) == "dim" else "strong"


def _since(thread: Thread) -> str:
    return duration(thread.waiting_for.for_s) if thread.waiting_for is not None else ""


def _held_by(picture: Picture, thread: Thread) -> Cell:
    wait = thread.waiting_for
    return (
        (picture.holders(wait.holders, wait.lock), "holder") if wait is not None else ("", "text")
    )


def _holds(thread: Thread) -> Cell:
    return (str(len(thread.holds)), "holder") if thread.holds else ("-", "dim")
