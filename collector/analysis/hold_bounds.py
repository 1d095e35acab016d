"""How long holds have lasted at least, where nobody measured when they began.

The library reads the clock for a sample of the holds alone, and nobody owns a semaphore. But three
facts bound such a hold. Its thread sleeps since then. A scan showed the hold before, and no thread
took the lock since. Or a thread waits since then, and the lock was not released meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.model import Draft, Held, Lock, Thread

#: A thread, and the id of a lock that the thread holds.
HoldKey = tuple[int, int]


class _UntimedHold(NamedTuple):
    since_s: float  # Draft.duration_s at the latest possible begin
    acquisitions: int | None  # of the lock, by all threads
    generation: int  # of the lock
    site: int


class HoldBounds:
    """Finds lower bounds of the holds that are not timed, from one scan to the next."""

    def __init__(self) -> None:
        self._holds: dict[HoldKey, _UntimedHold] = {}  # of the last scan
        self._scanned_s = 0.0  # Draft.duration_s of the last scan

    def annotate(
        self,
        draft: Draft,
        asleep_s: Callable[[int], float],
        proved_s: Mapping[HoldKey, float],
    ) -> None:
        """Fill in how long the holds of ``draft`` have lasted at least.

        Holds of readers are left out: several threads hold such a lock at a time.

        Args:
            draft: The draft, with the holders of semaphores.
            asleep_s: Returns for a tid how long the thread has slept at least, in seconds.
            proved_s: How long some holds have lasted at least, in seconds, by the waits for them.
        """
        former, self._holds = self._holds, {}
        interval_s = draft.duration_s - self._scanned_s
        self._scanned_s = draft.duration_s
        untimed = [
            thread
            for thread in draft.threads
            if thread.holds and not thread.pid and any(map(_is_untimed, thread.holds))
        ]
        if not untimed:
            return
        locks = {lock.id: lock for lock in draft.locks}
        bounded: dict[int, Thread] = {}
        for thread in untimed:
            slept_s = asleep_s(thread.tid) if _may_sleep_with_locks(thread) else 0.0
            holds = [
                self._bound_hold(
                    thread.tid,
                    held,
                    locks.get(held.lock),
                    draft.duration_s,
                    former=_same_hold(
                        former.get((thread.tid, held.lock)),
                        held,
                        locks.get(held.lock),
                        has_slept=slept_s >= interval_s,
                    ),
                    least_s=max(slept_s, proved_s.get((thread.tid, held.lock), 0.0)),
                )
                if _is_untimed(held)
                else held
                for held in thread.holds
            ]
            bounded[thread.tid] = replace(thread, holds=tuple(holds))
        draft.threads = tuple([bounded.get(thread.tid, thread) for thread in draft.threads])

    def _bound_hold(
        self,
        tid: int,
        held: Held,
        lock: Lock | None,
        now_s: float,
        *,
        former: _UntimedHold | None,
        least_s: float,
    ) -> Held:
        since_s = now_s - least_s
        if former is not None:
            since_s = min(since_s, former.since_s)
        self._holds[tid, held.lock] = _UntimedHold(
            since_s=since_s,
            acquisitions=lock.acquisitions if lock is not None else None,
            generation=lock.generation if lock is not None else 0,
            site=held.site,
        )
        if since_s >= now_s:
            return held
        return replace(held, duration_s=now_s - since_s, is_lower_bound=True)


def _is_untimed(held: Held) -> bool:
    return held.duration_s is None and not held.shared


def _may_sleep_with_locks(thread: Thread) -> bool:
    """Return whether a sleep of the thread bounds its holds.

    The kernel may give a lock to a thread that still sleeps in its wait for the lock.
    """
    wait = thread.waiting_for
    return thread.alive and (wait is None or all(wait.lock != held.lock for held in thread.holds))


def _same_hold(
    former: _UntimedHold | None, held: Held, lock: Lock | None, has_slept: bool
) -> _UntimedHold | None:
    """Return the hold of the last scan if it is the present one: its thread slept all the while, or
    no thread took the lock since."""
    if former is None or lock is None or former.site != held.site:
        return None
    if former.generation != lock.generation:
        return None
    is_untaken = lock.acquisitions is not None and lock.acquisitions == former.acquisitions
    return former if is_untaken or has_slept else None
