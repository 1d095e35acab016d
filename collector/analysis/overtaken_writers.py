"""Writers that readers overtake while they wait for a sampled reader-writer lock.

Such a lock counts its readers, and does not name them. If the number grows while a writer sleeps,
a thread took the lock to read meanwhile. Nothing proves that the writer would be next without such
threads: one reader may have had the lock all the while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from locktop.collector.analysis.contention_findings import PerhapsStarved
from locktop.collector.model import Lock, Thread
from locktop.collector.model.kinds import TURNS_KINDS

_MIN_WAIT_S = 1.0
_MIN_LATER_READS = 3  # and no fewer than there are readers
#: A reader that took the lock so soon after the writer began to wait has overtaken nobody.
_SOON_S = 0.1

#: Tells whether a thread, by its tid, may have slept for so many seconds.
Slept = Callable[[int, float], bool]


def find(
    contended: Iterator[tuple[Lock, list[Thread]]], may_have_slept: Slept
) -> Iterator[PerhapsStarved]:
    """Yield a finding for each lock whose writer has waited for 1 s while readers took the lock.

    There is no finding if a thread that probably reads the lock may have slept for as long as the
    writer waits: that thread keeps the writer.

    Args:
        contended: locks with contended waits, and their waiters.
        may_have_slept: tells this of a thread.
    """
    for lock, waiters in contended:
        if lock.kind not in TURNS_KINDS or not lock.readers:
            continue
        writers = [thread for thread in waiters if _is_overtaken(thread, lock.readers)]
        waited_s = max(map(_waited_s, writers), default=0.0)
        sleepers = (holder.tid for holder in lock.holders_probable)
        if writers and not any(may_have_slept(tid, waited_s - _SOON_S) for tid in sleepers):
            yield PerhapsStarved(
                lock=lock.id,
                tids=_tids(writers),
                writers=len(writers),
                longest_wait_s=waited_s,
                is_lower_bound=any(_is_lower_bound(thread) for thread in writers),
                readers=lock.readers,
                later_reads=max(_later_reads(thread) for thread in writers),
            )


def _is_overtaken(thread: Thread, readers: int) -> bool:
    wait = thread.waiting_for
    return (
        wait is not None
        and not wait.shared
        and wait.duration_s >= _MIN_WAIT_S
        and wait.later_reads >= max(_MIN_LATER_READS, readers)
    )


def _waited_s(thread: Thread) -> float:
    return thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0


def _is_lower_bound(thread: Thread) -> bool:
    return thread.waiting_for is not None and thread.waiting_for.is_lower_bound


def _later_reads(thread: Thread) -> int:
    return thread.waiting_for.later_reads if thread.waiting_for is not None else 0


def _tids(threads: Sequence[Thread]) -> tuple[int, ...]:
    return tuple(sorted(thread.tid for thread in threads))
