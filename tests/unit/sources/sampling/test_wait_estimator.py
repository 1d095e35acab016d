"""The counts of a queue are those that a plain count of the same samples has."""

from __future__ import annotations

import random

from locktop.collector.analysis.sampled_queues import QueueCounts
from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind
from locktop.collector.sources.sampling.nptl_objects import SyncObject
from locktop.collector.sources.sampling.wait_estimator import WaitEstimator
from locktop.collector.sources.sampling.wait_objects import SampledWait

LOCKS = (0x1000, 0x2000)
FUTEX = FutexWait(0x1000, 2, private=True, plain=True, inherits=False, timed=False)


def plain_count(samples: list[dict[int, SampledWait]], known: set[int], lock: int) -> QueueCounts:
    """Return the counts of one lock; ``known``: sleeps of samples before."""
    queues = [
        [wait for wait in sample.values() if wait.sync_object.address == lock] for sample in samples
    ]
    seqs = {wait.seq for queue in queues for wait in queue}
    return QueueCounts(
        waited=sum(bool(queue) for queue in queues),
        at_once=max(map(len, queues)),
        waits=len(seqs - known),
    )


def test_the_counts_of_random_samples_are_right() -> None:
    chance = random.Random(7)
    for _ in range(50):
        estimator, waits, known, seq = WaitEstimator(), dict[int, SampledWait](), set[int](), 0
        before: dict[int, SampledWait] = {}
        for _ in range(6):  # scans
            samples = []
            for _ in range(chance.randint(1, 5)):
                waits = dict(waits)
                for tid in range(4):
                    if chance.random() < 0.4:
                        waits.pop(tid, None)
                    if tid not in waits and chance.random() < 0.5:
                        seq += 1
                        of_lock = SyncObject(Kind.MUTEX, chance.choice(LOCKS), 101)
                        waits[tid] = SampledWait(tid, 1, seq, float(seq), FUTEX, of_lock)
                estimator.add(float(len(known) + seq + 1), waits)
                samples.append(waits)
            ids = {lock.id: address for (_, address), lock in estimator.locks.items()}
            count, queues = estimator.take_queues()
            assert count == len(samples)
            for id_, address in ids.items():
                expected = plain_count(samples, known, address)
                counts = queues.get(id_, QueueCounts(0, 0, 0))
                assert (counts.waited, counts.waits) == (expected.waited, expected.waits)
                # Those that waited at the last scan may leave in the first sample.
                former = sum(wait.sync_object.address == address for wait in before.values())
                assert expected.at_once <= counts.at_once <= max(expected.at_once, former)
            before = samples[-1]
            known |= {wait.seq for sample in samples for wait in sample.values()}
