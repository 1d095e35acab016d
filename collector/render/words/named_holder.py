"""The threads that screen and commands name as the holders of a lock."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from locktop.collector.model import Lock, Thread, ThreadActivity
from locktop.collector.render.words import likely_holder, probable_holder


class Certainty(Enum):
    """How sure it is that a thread has the lock."""

    EXACT = auto()  # the lock or the library names the thread
    PROBABLE = auto()  # its code goes on to release the lock
    LIKELY = auto()  # it is the only thread, or the only peer of the waiters, that does not wait


#: Before a name where a column has no room for a word.
_MARKS = {Certainty.EXACT: "", Certainty.PROBABLE: probable_holder.MARK, Certainty.LIKELY: "?"}
_ADVERBS = {Certainty.EXACT: "", Certainty.PROBABLE: "probably ", Certainty.LIKELY: "likely "}


class NamedHolder(Struct, frozen=True):
    """The threads that are named as the holders of a lock."""

    tids: tuple[int, ...]  # at least one
    certainty: Certainty
    now: ThreadActivity | None  # of one of these threads; None: not known
    #: A peer of the waiters: the outermost function of them all; "" for other threads.
    function: str = ""

    @property
    def adverb(self) -> str:
        """The word before the name: "", "probably ", "likely "."""
        return _ADVERBS[self.certainty]

    @property
    def why(self) -> str:
        """Why a likely holder is one."""
        if self.function:
            return f"the only thread in {self.function} that does not wait"
        return likely_holder.WHY

    @property
    def mark(self) -> str:
        """The character before the name in a column."""
        return _MARKS[self.certainty]


class EarlierHolder(Struct, frozen=True):
    """The threads that an earlier scan named as the holders of a lock."""

    tids: tuple[int, ...]  # at least one
    names: str  # "probably flusher"
    at_s: float  # Snapshot.duration_s


def name(
    lock: Lock,
    noted: tuple[int, ...],
    likely: Thread | None,
    peer: tuple[Thread, str] | None = None,
) -> NamedHolder | None:
    """Return the threads that are named as the holders of a lock; None without any.

    Args:
        lock: the lock.
        noted: the holders that its longest wait names.
        likely: the thread of likely_holder.find().
        peer: the thread of waiter_peers.find(), and its function.
    """
    activity = lock.holder_activity
    if holders := lock.holders or noted:
        return NamedHolder(holders, Certainty.EXACT, activity)
    if probable := probable_holder.tids(lock):
        return NamedHolder(probable, Certainty.PROBABLE, activity)
    if likely is not None:
        return NamedHolder((likely.tid,), Certainty.LIKELY, likely.now)
    if peer is not None:
        thread, function = peer
        return NamedHolder((thread.tid,), Certainty.LIKELY, thread.now, function)
    return None
