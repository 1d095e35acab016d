"""The flag of the first line that tells in a word what is wrong."""

from __future__ import annotations

from locktop.collector.model import PatternName
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.verdict import is_deadlocked, long_hang

#: The patterns in which threads hardly go on, the worst first.
_WORDS = {
    PatternName.STARVED_WRITER: "STARVED",
    PatternName.CONVOY: "CONVOY",
    PatternName.SERIALISED: "SERIALISED",
    PatternName.NO_SIGNAL: "NO SIGNAL",
}


def verdict_flag(index: SnapshotIndex) -> str:
    """The finding that matters most, in one or two words; "" if nothing is wrong.

    A question mark means that the deadlock is possible, not certain.
    """
    snapshot = index.snapshot
    if snapshot.deadlocks:
        return "DEADLOCK" if is_deadlocked(snapshot) else "DEADLOCK?"
    if (whole := long_hang(snapshot)) is not None:
        return "HANG" if whole.certain else "HANG?"
    if snapshot.stopped:
        return "STOPPED"
    names = {pattern.name for pattern in snapshot.patterns}
    return next((word for name, word in _WORDS.items() if name in names), "")
