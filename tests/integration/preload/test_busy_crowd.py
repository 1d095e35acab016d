"""A busy crowd of threads: exact figures, and the blame of a lock is made only when needed."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from support.targets import StartTarget

from locktop.collector.model import Kind, LazyBlame, Lock, Snapshot
from locktop.collector.native import lib
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources import discover
from locktop.collector.sources.preload.source import PreloadSource
from locktop.collector.sources.watched_process import WatchedProcess

THREADS, LOCKS = 64, 42


def crowded(snapshot: Snapshot) -> list[Lock]:
    """The locks of the crowd."""
    return [lock for lock in snapshot.locks if lock.kind is Kind.MUTEX and lock.contended]


def plain_blame(memory: SharedMemory, lock: Lock) -> Counter[tuple[int, int]]:
    """Ticks by tid and call site, of the charges in the shared memory of a crowd at rest."""
    found: Counter[tuple[int, int]] = Counter()
    reading = Reader(memory, Clock(memory.header())).read()
    for charge in layout.CHARGE.each(reading.charges[lock.id].packed):
        at = charge.stack * lib.LT_STACK_UNIT + layout.STACK.size
        address = int.from_bytes(memory.read(at, 8), layout.BYTE_ORDER)
        found[charge.holder, address] += charge.wait_ticks
    return found


def test_a_crowd_at_rest_has_exact_figures(start_target: StartTarget) -> None:
    target = start_target("busy_crowd", str(THREADS))
    target.expect("ready")
    with closing(PreloadSource(target.pid)) as source:
        for _ in range(3):  # while the crowd is at work
            for lock in crowded(source.scan()):
                assert sum(one.wait_s for one in lock.blame) == pytest.approx(lock.wait_s)
        target.go_on()
        turns = target.truth()["turns"]
        snapshot = source.scan()
        locks = crowded(snapshot)
        memory = discover.open_memory(WatchedProcess(target.pid).target)
        clock = Clock(memory.header())
        assert len(locks) == LOCKS
        assert sum(lock.acquisitions or 0 for lock in locks) == turns
        again = document(source.scan())
        for lock in locks:
            named = {(one.tid, one.site): one.wait_s for one in lock.blame if one.tid}
            expected = plain_blame(memory, lock)
            # The charges may be more than the wait, for the clock is read twice.
            scale = min(1.0, lock.wait_s / clock.seconds(sum(expected.values())))
            assert named.keys() == expected.keys()
            for holder, ticks in expected.items():
                assert named[holder] == pytest.approx(clock.seconds(ticks) * scale, rel=1e-3)
            (entry,) = [one for one in again["locks"] if one["id"] == lock.id]
            assert [
                (one["tid"], int(one["site"], 16), one["through"]) for one in entry["blame"]
            ] == [one.holder for one in lock.blame]
            assert [one["wait_s"] for one in entry["blame"]] == pytest.approx(
                [one.wait_s for one in lock.blame], rel=1e-3
            )


def test_a_scan_makes_no_element_of_the_blame(
    start_target: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target("busy_crowd", str(THREADS))
    target.expect("ready")
    target.go_on()
    target.truth()
    with closing(PreloadSource(target.pid)) as source:
        with monkeypatch.context() as context:
            context.setattr("locktop.collector.sources.preload.blame.Blame", None)
            snapshots = [source.scan(), source.scan()]
        locks = crowded(snapshots[1])
        assert len(locks) == LOCKS
        for lock in locks:
            assert isinstance(lock.blame, LazyBlame)
            assert sum(one.wait_s for one in lock.blame) == pytest.approx(lock.wait_s)
