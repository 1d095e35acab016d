"""The second line: the process, how it is observed, and the flags at its right end."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len

from locktop.collector.model import Pattern, PatternName, Snapshot, ThreadState
from locktop.collector.render.words import lock_order
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.verdict import is_deadlocked, long_hang
from locktop.tui.views.cells import clock, counted, exact, plain, size
from locktop.tui.views.past_flag import Position, past_flag
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line

#: From so many columns on no word is short.
_WIDE = 100
#: Cells between the left and the right.
_GAP = 2
#: The patterns in which threads hardly go on, the worst first.
_FLAGS_OF_PATTERNS = {
    PatternName.STARVED_WRITER: "STARVED",
    PatternName.PERHAPS_STARVED: "STARVED?",
    PatternName.CPU_STARVED: "CPU-STARVED",
    PatternName.CONVOY: "CONVOY",
    PatternName.CONTENDED: "CONTENDED",
    PatternName.SERIALISED: "SERIALISED",
    PatternName.NO_SIGNAL: "NO SIGNAL",
}

#: The words for each level, and the key that changes it.
_RECORDED = {
    "dormant": "records nothing (key L)",
    "counting": "counts waits (key L)",
    "contended": "records waits (key L)",
    "blocks": "records waits, holds (key L)",
    "all": "records all (key L)",
    "sampled": "sampled from outside",
}


class Pace(Struct, frozen=True):
    """How often the screen is drawn."""

    target: float  # snapshots a second
    actual: float  # less than the target where the terminal is too slow

    @property
    def text(self) -> str:
        """The pace, and why it is not what the user chose."""
        rate = min(self.actual, self.target)
        slow = ", slow terminal" if rate < self.target else ""
        return f"{rate:g} update{'s' * (rate != 1)}/s{slow}"


class _Part(Struct, frozen=True):
    """A part of the line. Of two parts, that with the greater rank goes first."""

    span: Span
    rank: int


def status_line(
    snapshot: Snapshot,
    pace: Pace,
    width: int,
    is_past: bool = False,
    alerts: int = 0,
) -> Line:
    """The second line in ``width`` cells: the process at the left, the screen at the right.

    Where there is no room, the parts go that say least. The process, its threads and its level
    stay longest.

    Args:
        snapshot: the snapshot on the screen.
        pace: how often the screen is drawn.
        width: cells.
        is_past: whether a moment of the past is on the screen.
        alerts: how many alerts of the past there are.
    """
    left, right = _process(snapshot), [] if is_past else _screen(snapshot, pace, width, alerts)
    while left and _cells(left) + _GAP * bool(right) + _cells(right) > width:
        least = max(left + right, key=lambda part: part.rank)
        if least is left[0]:
            break
        (left if least in left else right).remove(least)
    blanks = " " * (width - _cells(left) - _cells(right))
    return cut(make_line(*_spans(left), blanks, *_spans(right)), width)


def _spans(parts: Sequence[_Part]) -> list[Span | str]:
    return [part.span for part in parts]


def _cells(parts: Sequence[_Part]) -> int:
    return sum([cell_len(plain(part.span[0])) for part in parts])


def process_line(snapshot: Snapshot) -> str:
    """The left of the second line in full, as plain text, with the state of the process."""
    state = "  ENDED" if snapshot.ended else ""
    return line_text(make_line(*_spans(_process(snapshot)))) + state


def notes(snapshot: Snapshot) -> tuple[str, ...]:
    """The notes on the whole snapshot, for the help: one text each."""
    sentences = (
        f"{pattern.name.words}: {pattern.evidence}. {pattern.advice}"
        for pattern in _process_patterns(snapshot)
    )
    return (*sentences, *snapshot.notes)


def _process_patterns(snapshot: Snapshot) -> list[Pattern]:
    """The patterns of the whole process: the details of a lock do not show them."""
    return [pattern for pattern in snapshot.patterns if not pattern.lock]


def _process(snapshot: Snapshot) -> list[_Part]:
    """The parts at the left. Without a process there is one part."""
    process = snapshot.process
    if not process.pid:  # a listener waits for its first snapshot
        return [_Part((f" {process.comm}", "strong"), 0)]
    threads = snapshot.threads
    alive = len(threads) if snapshot.ended else sum([thread.alive for thread in threads])
    waiting = [thread.state for thread in threads].count(ThreadState.WAITING)
    lost = f"  lost {exact(snapshot.lost_events)}"
    level_style = "waiting" if snapshot.level == "dormant" else "text"
    parts = [
        _Part((f" {process.comm}", "strong"), 0),
        _Part((f" {process.pid}", "text"), 1),
        _Part((f"  {counted(alive, 'thread')}", "text"), 2),
        _Part((f", {waiting} waiting" if waiting else "", "waiting"), 6),
        *(
            _Part((f"  {pattern.name.words} (key ?)", "waiting"), 5)
            for pattern in _process_patterns(snapshot)
        ),
        _Part((f"  {_RECORDED.get(snapshot.level, snapshot.level)}", level_style), 3),
        _Part((lost if snapshot.lost_events else "", "text"), 10),
        _Part((f"  cpu {process.cpu_share:.2f}" if snapshot.interval_s else "  cpu -", "text"), 12),
        _Part((f"  {clock(snapshot.duration_s)}", "text"), 15),
        _Part((lost if not snapshot.lost_events else "", "text"), 17),
        _Part((f"  rss {size(process.rss_bytes)}" if process.rss_bytes else "", "text"), 18),
        _Part((f"  on {snapshot.host}" if snapshot.host else "", "text"), 19),
    ]
    return [part for part in parts if part.span[0]]


def _screen(snapshot: Snapshot, pace: Pace, width: int, alerts: int) -> list[_Part]:
    """The parts at the right."""
    parts: list[_Part] = []
    if alerts:
        parts.append(_Part((f"{counted(alerts, 'alert')} (key {{)  ", "waiting"), 4))
    if snapshot.session_s is not None:
        parts.append(_Part((f"session {clock(snapshot.session_s)}  ", "waiting"), 7))
    potential = len(lock_order.not_there(snapshot))
    is_wide = width >= _WIDE
    if potential:
        words = counted(potential, "potential deadlock") if is_wide else f"{potential} potential"
        parts.append(_Part((f"{words} (key d)  ", "dim"), 9))
    elif list(lock_order.missing(snapshot)):
        parts.append(_Part((f"potential{' deadlocks' * is_wide} unknown (key d)  ", "dim"), 14))
    if snapshot.names_left:
        parts.append(_Part((f"names: {exact(snapshot.names_left)} left  ", "dim"), 13))
    if snapshot.notes:
        parts.append(_Part((f"{counted(len(snapshot.notes), 'note')} (key ?)  ", "waiting"), 8))
    if snapshot.source == "core":  # nothing is updated
        return parts
    is_slow = pace.actual < pace.target
    return [*parts, _Part((f"{pace.text} ", "dim"), 5 if is_slow else 16)]


def state_flags(index: SnapshotIndex | None, paused: bool, position: Position | None) -> Line:
    """The verdict on the process and the state of the screen, for the second line.

    Args:
        index: the snapshot on the screen; None before the first.
        paused: whether the screen stays as it is.
        position: the moment of the past that is on the screen; None: now.
    """
    flags: list[Span | str] = []
    if index is not None and (verdict := verdict_flag(index)):
        flags += [(f" {verdict} ", "alert" if index.stuck_threads else "waiting"), " "]
    if index is not None and index.snapshot.ended:
        flags += [(" ENDED ", "flag"), " "]
    if paused and position is None:
        flags += [(" PAUSED ", "flag"), " "]
    return (*(past_flag(position) if position is not None else ()), *make_line(*flags))


def verdict_flag(index: SnapshotIndex) -> str:
    """The finding that matters most, in one or two words; "" if nothing is wrong.

    A question mark means that it is possible, not certain.
    """
    snapshot = index.snapshot
    if index.deadlocks:
        return "DEADLOCK" if is_deadlocked(snapshot) else "DEADLOCK?"
    if (whole := long_hang(snapshot)) is not None:
        return "HANG" if whole.certain else "HANG?"
    if snapshot.stopped:
        return "STOPPED"
    names = {pattern.name for pattern in snapshot.patterns}
    return next((word for name, word in _FLAGS_OF_PATTERNS.items() if name in names), "")
