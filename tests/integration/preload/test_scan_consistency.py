"""Threads run on during a scan, and the snapshot still shows each thread at one moment."""

from __future__ import annotations

from support.targets import StartTarget

from locktop.collector.sources.attach import attach

SCANS = 300


def test_no_thread_waits_for_a_lock_that_it_holds(start_target: StartTarget) -> None:
    target = start_target("priority_inheritance_handover")
    target.expect("ready")
    source = attach(target.pid)
    waits = 0
    for _ in range(SCANS):
        snapshot = source.scan()
        for thread in snapshot.threads:
            if (wait := thread.waiting_for) is not None:
                waits += 1
                assert wait.lock not in [held.lock for held in thread.holds]
                assert thread.tid not in wait.holders
        for lock in snapshot.locks:
            assert set(lock.holders).isdisjoint(lock.waiters)
        assert snapshot.deadlocks == ()
    source.close()
    assert waits > SCANS, "without waits this test proves nothing"
