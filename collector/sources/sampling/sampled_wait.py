"""A wait of a thread, as samples show it."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.linux.futex import FutexWait
from locktop.collector.sources.sampling.nptl_objects import SyncObject


class SampledWait(Struct, frozen=True, gc=False):
    """A thread that sleeps in a futex call. A sample makes one for each thread that moves."""

    tid: int
    life: int  # of the thread, see Sample
    seq: int  # of the sleep, see Sample
    since: float  # begin of the first sample that saw it: time.monotonic()
    futex: FutexWait
    sync_object: SyncObject  # of Kind.FUTEX if the object is unknown
    later_reads: int = 0  # rwlock: how often threads took it to read during the wait, at least
    renewals: int = 0  # sleeps with a time limit before this one that belong to the same wait
    first_since: float = 0.0  # with ``renewals``: ``since`` of the first of these sleeps

    @property
    def whole_since(self) -> float:
        """Since when a thread waits again and again, time.monotonic()."""
        return self.first_since if self.renewals else self.since
