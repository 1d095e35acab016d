"""The second line: the process and how it is observed. And the flags of the first line."""

from __future__ import annotations

from msgspec import Struct
from rich.cells import cell_len

from locktop.collector.model import Pattern, PatternName, Snapshot, ThreadState
from locktop.collector.render.words import lock_order
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.verdict import is_deadlocked, long_hang
from locktop.tui.views.cells import clock, counted, exact, fit, size
from locktop.tui.views.past_flag import Position, past_flag
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line, merge

#: Cells between the left and the right.
_GAP = 2
#: The patterns in which threads hardly go on, the worst first.
_FLAGS_OF_PATTERNS = {
    PatternName.STARVED_WRITER: "STARVED",
    PatternName.CONVOY: "CONVOY",
    PatternName.SERIALISED: "SERIALISED",
    PatternName.NO_SIGNAL: "NO SIGNAL",
}


class Pace(Struct, frozen=True):
    """How often the screen is drawn."""

    target: float  # snapshots a second
    actual: float  # less than the target where the terminal is too slow

    @property
    def text(self) -> str:
        """The pace in as few characters as possible."""
        if self.actual < self.target:
            return f"{self.actual:g}/s, slow terminal"
        return f"{self.target:g}/s"


def status_line(
    snapshot: Snapshot,
    pace: Pace,
    width: int,
    position: Position | None = None,
    alerts: int = 0,
) -> Line:
    """The second line in ``width`` cells: the process at the left, the screen at the right.

    Args:
        snapshot: the snapshot on the screen.
        pace: how often the screen is drawn.
        width: cells.
        position: the moment of the past that is on the screen; None: now.
        alerts: how many alerts of the past there are.
    """
    right = _flags(snapshot, pace, alerts) if position is None else ()
    space = width - cell_len(line_text(right))
    room = space - _GAP
    left: list[Span | str] = []
    for part in _parts(snapshot, position, room):
        # The line ends before the first part that does not fit, so that no part moves.
        if left and cell_len(line_text(make_line(*left, part))) > room:
            break
        left.append(part)
    line = cut(make_line(*left), room)
    return merge((*line, (" " * (space - cell_len(line_text(line))), "text"), *right))


def process_line(snapshot: Snapshot) -> str:
    """The left of the second line in full, as plain text, with the state of the process."""
    state = "  ENDED" if snapshot.ended else ""
    return line_text(make_line(*_process(snapshot))) + state


def _parts(snapshot: Snapshot, position: Position | None, room: int) -> list[Span | str]:
    """The parts at the left; the text of an alert that the user jumped to comes second."""
    parts = _process(snapshot)
    if position is None or not position.reason:
        return parts
    name = parts[:2]
    left = room - cell_len(line_text(make_line(*name))) - _GAP
    return [*name, ("  " + fit(position.reason, max(left, 1)).rstrip(), "waiting")]


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


def _process(snapshot: Snapshot) -> list[Span | str]:
    """The parts at the left, the least important at the end."""
    process = snapshot.process
    if not process.pid:  # a listener waits for its first snapshot
        return [(f" {process.comm}", "strong")]
    threads = snapshot.threads
    alive = len(threads) if snapshot.ended else sum([thread.alive for thread in threads])
    waiting = [thread.state for thread in threads].count(ThreadState.WAITING)
    return [
        (f" {process.comm}", "strong"),
        f" {process.pid}",
        f"  {counted(alive, 'thread')}",
        (f", {waiting} waiting" if waiting else "", "waiting"),
        *((f"  {pattern.name.words}: ?", "waiting") for pattern in _process_patterns(snapshot)),
        (f"  level {snapshot.level}", "waiting" if snapshot.level == "dormant" else "text"),
        f"  lost {exact(snapshot.lost_events)}" if snapshot.lost_events else "",
        f"  cpu {process.cpu_share:.2f}" if snapshot.interval_s else "  cpu -",
        f"  {clock(snapshot.duration_s)}",
        f"  {snapshot.source}",
        "  lost 0" if not snapshot.lost_events else "",
        f"  rss {size(process.rss_bytes)}" if process.rss_bytes else "",
        f"  on {snapshot.host}" if snapshot.host else "",
    ]


def state_flags(index: SnapshotIndex | None, paused: bool, position: Position | None) -> Line:
    """The verdict on the process and the state of the screen, for the first line.

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


def _flags(snapshot: Snapshot, pace: Pace, alerts: int) -> Line:
    flags: list[Span | str] = []
    if alerts:
        flags.append((f"{counted(alerts, 'alert')}: {{  ", "waiting"))
    if snapshot.session_s is not None:
        flags.append((f"session {clock(snapshot.session_s)}  ", "waiting"))
    potential = len(lock_order.not_there(snapshot))
    if potential:
        flags.append((f"{potential} potential: d  ", "dim"))
    elif list(lock_order.missing(snapshot)):
        flags.append(("potential unknown: d  ", "dim"))
    if snapshot.names_left:
        flags.append((f"names: {exact(snapshot.names_left)} left  ", "dim"))
    if snapshot.notes:
        many = f"{len(snapshot.notes)} notes" if len(snapshot.notes) > 1 else "1 note"
        flags.append((f"{many}: ?  ", "waiting"))
    return make_line(*flags, (pace.text + " ", "dim"))


def verdict_flag(index: SnapshotIndex) -> str:
    """The finding that matters most, in one or two words; "" if nothing is wrong.

    A question mark means that the deadlock is possible, not certain.
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
