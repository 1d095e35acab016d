"""Locks of a sampled process that threads queue for, by the samples of the last scans."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping

from msgspec import Struct

from locktop.collector.analysis.contention_findings import Contended
from locktop.collector.model import Contents, Frame, Lock

#: The last scans with so many samples count: those of some ten seconds.
_MAX_SAMPLES = 200
_MIN_SAMPLES = 40
_MIN_WAITED = 0.9  # share of the samples
_MIN_AT_ONCE = 2
#: Fewer waits are a few long ones, whose holder matters more.
_MIN_WAITS = 10
_MIN_SEEN = 3  # scans that show the holder in one function


class QueueCounts(Struct, frozen=True, gc=False):
    """The queue of one lock in the samples between two scans."""

    waited: int  # samples in which a thread waited for the lock
    at_once: int  # the most threads that waited in one of them
    waits: int  # waits that a sample met first


class _ScanCounts(Struct, frozen=True):
    samples: int
    queues: Mapping[int, QueueCounts]  # by lock
    locations: Mapping[int, Frame]  # by lock: where its holder was at the scan


class QueueSamples:
    """The samples of the last scans of one process."""

    def __init__(self) -> None:
        self._scans: deque[_ScanCounts] = deque()
        self._samples = 0

    def add(
        self, samples: int, queues: Mapping[int, QueueCounts], locations: Mapping[int, Frame]
    ) -> None:
        """Add what one scan shows.

        Args:
            samples: the samples since the scan before, of all threads.
            queues: by the id of each lock that threads waited for in these.
            locations: by lock, where its holder was at the scan.
        """
        self._scans.append(_ScanCounts(samples, queues, locations))
        self._samples += samples
        while self._samples - self._scans[0].samples >= _MAX_SAMPLES:
            self._samples -= self._scans.popleft().samples

    def find(self, snapshot: Contents) -> Iterator[Contended]:
        """Yield the locks that threads queue for.

        At least 40 samples count. In 90 % of these a thread waited for the lock, and at least once
        two threads did. At least 10 waits began, so no single long hold causes the queue.
        """
        samples = self._samples
        if samples < _MIN_SAMPLES:
            return
        threads = {thread.tid: thread for thread in snapshot.threads}
        for lock in snapshot.locks:
            counts = [scan.queues[lock.id] for scan in self._scans if lock.id in scan.queues]
            waited = sum(count.waited for count in counts)
            at_once = max([count.at_once for count in counts], default=0)
            if (
                lock.idle
                or waited < samples * _MIN_WAITED
                or at_once < _MIN_AT_ONCE
                or sum(count.waits for count in counts) < _MIN_WAITS
            ):
                continue
            location, seen, scans = self._most_common_location(lock)
            yield Contended(
                lock=lock.id,
                tids=tuple(sorted(tid for tid in lock.waiters if tid in threads)),
                samples=samples,
                waited=waited,
                at_once=at_once,
                location=location,
                location_scans=seen,
                scans=scans,
            )

    def _most_common_location(self, lock: Lock) -> tuple[Frame | None, int, int]:
        """Return where the holder was most often, in how many scans, and of how many."""
        frames = [scan.locations[lock.id] for scan in self._scans if lock.id in scan.locations]
        functions = Counter(frame.function for frame in frames).most_common(1)
        if not functions or functions[0][1] < _MIN_SEEN:
            return None, 0, 0
        ((function, seen),) = functions
        inside = [frame for frame in frames if frame.function == function]
        ((frame, _),) = Counter(inside).most_common(1)
        return frame, seen, len(frames)
