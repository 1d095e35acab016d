"""The holders that single scans show, where no hold has a record or an age."""

from __future__ import annotations

from locktop.collector.analysis.holder_sights import seen_during, sights_by_lock
from locktop.collector.model import (
    Held,
    HoldersSeen,
    LaneState,
    LockHolds,
    ScanSample,
    ThreadSample,
)


def scan(time_ns: int, *tids: int, shared: bool = True, readers: int = 0) -> ScanSample:
    """Return a scan in which these threads hold lock 1, and each thread holds lock 2."""
    held = tuple(
        Held(lock=lock, site=0, duration_s=None, shared=shared and lock == 1) for lock in (1, 2)
    )
    threads = {
        tid: ThreadSample(name=f"t{tid}", state=LaneState.SLEEPING, wait=None, holds=held)
        for tid in tids
    }
    return ScanSample(
        time_ns=time_ns,
        is_sampled=False,
        lost_records=0,
        threads=threads,
        readers={1: readers} if readers else {},
    )


def seen(*scans: ScanSample, to_ns: int = 100) -> HoldersSeen | None:
    """Return whom the scans show as holders of lock 1 from moment 10 on."""
    holds = LockHolds(
        records=(),
        latest_end_ns=(),
        activities=(),
        sights=tuple(sights_by_lock(scans, {1}).get(1, ())),
        scan_times=tuple(sample.time_ns for sample in scans),
    )
    return seen_during(holds, 10, to_ns)


def test_the_thread_in_most_scans_comes_first() -> None:
    assert seen(scan(10, 5), scan(20, 5, 6), scan(30), scan(40, 6), scan(50, 6)) == HoldersSeen(
        scans=5, held=4, tids=(6, 5), are_readers=True
    )


def test_scans_before_and_after_the_wait_do_not_count() -> None:
    assert seen(scan(5, 5), scan(20, 6), scan(30, 7), to_ns=20) == HoldersSeen(
        scans=1, held=1, tids=(6,), are_readers=True
    )
    assert seen(scan(5, 5), scan(20), scan(30, 7), to_ns=20) is None


def test_readers_may_have_no_names() -> None:
    assert seen(scan(10, readers=2), scan(20)) == HoldersSeen(
        scans=2, held=1, tids=(), are_readers=True
    )


def test_one_exclusive_holder_is_no_reader() -> None:
    found = seen(scan(10, 5), scan(20, 6, shared=False))
    assert found is not None
    assert not found.are_readers
