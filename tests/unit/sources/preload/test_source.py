"""The preload source over files made by hand: figures, waits and holders."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key, record, scan

from locktop.collector.errors import LocktopError
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Kind, Snapshot, ThreadState
from locktop.collector.native import lib
from locktop.collector.sources.attach import attach

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
OTHER_MUTEX = key(lib.LT_KIND_MUTEX, 0x2000)
SECOND = 1_000_000_000
#: Every damaged file must give one of these.
SOUND = (Snapshot, LocktopError)


def test_figures_of_living_and_ended_threads_add_up(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(
        lib.LT_KIND_MUTEX, 0x1000, retired_acquisitions=5, retired_contended=2,
        retired_wait_ticks=SECOND, retired_wait_max=SECOND,
        retired_hold_contended=2, retired_hold_contended_ticks=2 * SECOND,
        retired_hold_sampled=3, retired_hold_sampled_ticks=3 * SECOND,
    )  # fmt: skip
    for tid in (os.getpid(), 7):
        thread = file.add_thread(tid)
        counts = {"acquisitions": 10, "contended": 4, "wait_ticks": 2 * SECOND, "wait_max": SECOND,
                  "hold_contended": 4, "hold_contended_ticks": SECOND, "hold_sampled": 2,
                  "hold_sampled_ticks": SECOND, "trylock_failed": 1}  # fmt: skip
        file.give_slots(thread, 4, [{"key": MUTEX, "lock": lock, **counts}])
    found = scan(file, directory).locks
    assert [entry.id for entry in found] == [lock]
    assert (found[0].kind, found[0].address) == (Kind.MUTEX, 0x1000)
    assert (found[0].acquisitions, found[0].contended, found[0].trylock_failed) == (25, 10, 2)
    assert found[0].wait_s == pytest.approx(5)
    assert found[0].wait_max_s == pytest.approx(1)
    # Ended threads: 2 + 3 s. Each living thread: 1 s measured, and 1 s / 2 for 6 other holds.
    assert found[0].hold_s == pytest.approx(5 + 2 * (1 + 3))
    assert found[0].hold_timed == 2 + 3 + 2 * (4 + 2)


def test_posts_and_signals_add_up_and_are_no_holds(directory: Path) -> None:
    file = SharedFile()
    kinds = {Kind.SEM: lib.LT_KIND_SEM, Kind.COND: lib.LT_KIND_COND}
    locks = {
        kind: file.add_lock(sleep_key, 0x1000, retired_signals=4, retired_acquisitions=1)
        for kind, sleep_key in kinds.items()
    }
    only_posted = file.add_lock(lib.LT_KIND_SEM, 0x2000, retired_signals=7)
    for tid in (os.getpid(), 7):
        slots = [
            {"key": key(kinds[kind], 0x1000), "lock": lock, "signals": 10, "acquisitions": 3}
            for kind, lock in locks.items()
        ]
        file.give_slots(file.add_thread(tid), 4, slots)
    found = {lock.id: lock for lock in scan(file, directory).locks}
    assert found.keys() == {*locks.values(), only_posted}
    assert found[only_posted].signals == 7
    for kind, lock in locks.items():
        assert (found[lock].kind, found[lock].signals, found[lock].acquisitions) == (kind, 24, 7)
        assert (found[lock].hold_s, found[lock].hold_timed) == (0, 0)


def test_signals_have_a_rate(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_SEM, 0x1000, retired_signals=5)
    path = file.save(directory)
    source = attach(file.pid)
    try:
        source.scan()
        assert source.scan().locks[0].rates.signals == 0
        counts = file.retired(lock).counts
        counts.signals, counts.acquisitions = counts.signals + 1000, 500
        path.write_bytes(file.data)
        after = source.scan().locks[0]
    finally:
        source.close()
    assert after.signals == 1005
    assert after.rates.signals == pytest.approx(2 * after.rates.acquisitions)
    assert after.rates.signals > 0


def test_sampled_holds_of_writers_and_readers_are_scaled_separately(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_RWLOCK, 0x1000)
    rwlock = key(lib.LT_KIND_RWLOCK, 0x1000)
    writer, reader = file.add_thread(os.getpid()), file.add_thread(7)
    file.give_slots(writer, 2, [{"key": rwlock, "lock": lock, "acquisitions": 1,
                                 "hold_sampled": 1, "hold_sampled_ticks": SECOND}])  # fmt: skip
    file.give_slots(reader, 2, [{"key": rwlock, "lock": lock, "acquisitions": 1000,
                                 "hold_contended": 1, "hold_contended_ticks": 1000}])  # fmt: skip
    assert scan(file, directory).locks[0].hold_s == pytest.approx(1 + 1000 * 1e-6)


def test_an_ongoing_wait_counts(directory: Path, second_tid: int) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    stack = file.add_stack([0x10, 0x20])
    waiter, holder = file.add_thread(os.getpid()), file.add_thread(second_tid)
    since = time.monotonic_ns() - 10 * SECOND
    file.wait(waiter, lock, MUTEX, since=since, stack=stack, site=0x10)
    file.hold(holder, lock, MUTEX, lib.LT_HELD_TIMED, since)
    snapshot = scan(file, directory)
    threads = {thread.tid: thread for thread in snapshot.threads}
    wait = threads[os.getpid()].waiting_for
    assert wait is not None
    assert (wait.holders, wait.stack, wait.timed) == ((second_tid,), stack, False)
    assert threads[os.getpid()].state is ThreadState.WAITING
    assert threads[os.getpid()].wait_s[Kind.MUTEX] == pytest.approx(10, abs=5)
    assert [held.lock for held in threads[second_tid].holds] == [lock]
    assert snapshot.locks[0].waiters == (os.getpid(),)
    assert snapshot.locks[0].holders == (second_tid,)
    assert snapshot.locks[0].wait_max_s == pytest.approx(snapshot.locks[0].wait_s)
    assert snapshot.locks[0].hold_s == pytest.approx(10, abs=5)
    assert [frame.address for frame in snapshot.stacks[stack]] == [0x10, 0x20]


def test_a_wait_for_work_is_idle_and_no_contention(directory: Path) -> None:
    file = SharedFile()
    cond = key(lib.LT_KIND_COND, 0x3000)
    lock = file.add_lock(lib.LT_KIND_COND, 0x3000)
    thread = file.add_thread(os.getpid())
    file.give_slots(thread, 2, [{"key": cond, "lock": lock, "acquisitions": 3, "contended": 3,
                                 "wait_ticks": SECOND}])  # fmt: skip
    file.wait(thread, lock, cond, since=time.monotonic_ns())
    found = scan(file, directory).threads
    me = next(thread for thread in found if thread.tid == os.getpid())
    assert me.state is ThreadState.IDLE
    assert (me.acquisitions, me.contended) == (0, 0)


def test_a_half_written_wait_and_an_old_held_list_are_ignored(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    thread = file.add_thread(os.getpid(), mode=lib.LT_LEVEL_COUNTING)
    file.hold(thread, lock, MUTEX)
    file.wait(thread, lock, MUTEX, since=1)
    thread.wait.seq = 3
    snapshot = scan(file, directory)
    me = next(thread for thread in snapshot.threads if thread.tid == os.getpid())
    assert me.waiting_for is None
    assert me.holds == ()


@pytest.mark.parametrize(
    ("kind", "flags", "count"),
    [
        (lib.LT_KIND_MUTEX, (0, 0), 1),
        (lib.LT_KIND_RWLOCK, (lib.LT_HELD_SHARED, lib.LT_HELD_SHARED), 2),
        (lib.LT_KIND_RWLOCK, (lib.LT_HELD_SHARED, 0), 1),
        (lib.LT_KIND_RWLOCK, (0, lib.LT_HELD_SHARED), 1),
    ],
)
def test_a_lock_that_changes_hands_during_a_scan_has_one_owner(
    directory: Path, second_tid: int, kind: int, flags: tuple[int, int], count: int
) -> None:
    file = SharedFile()
    lock = file.add_lock(kind, 0x1000)
    both = (os.getpid(), second_tid)
    for tid, held in zip(both, flags, strict=True):
        file.hold(file.add_thread(tid), lock, key(kind, 0x1000), held)
    assert scan(file, directory).locks[0].holders == both[-count:]


def test_the_owner_that_all_long_waiters_saw_holds_an_unlisted_lock(
    directory: Path, second_tid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {"one": (second_tid,), "several": (second_tid, os.getpid())}
    for seen, duration_s, asleep, expected in (
        ("one", 10, True, (second_tid,)),
        ("one", 10, False, ()),  # the woken thread has yet to run
        ("one", 0, True, ()),  # the lock changes hands
        ("several", 10, True, ()),
    ):
        monkeypatch.setattr(KernelThreads, "are_asleep", lambda *_, asleep=asleep: asleep)
        file = SharedFile()
        lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
        since = time.monotonic_ns() - duration_s * SECOND + (0 if duration_s else 3600 * SECOND)
        for tid, holder in zip((os.getpid(), second_tid), others[seen], strict=False):
            file.wait(file.add_thread(tid), lock, MUTEX, since=since, holder=holder)
        snapshot = scan(file, directory)
        me = next(thread for thread in snapshot.threads if thread.tid == os.getpid())
        assert me.waiting_for is not None
        assert me.waiting_for.holders == expected
        assert snapshot.locks[0].holders == expected


def test_the_newest_block_of_a_tid_counts(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    old, _new = file.add_thread(os.getpid(), birth=1), file.add_thread(os.getpid(), birth=2)
    file.hold(old, lock, MUTEX)
    me = [thread for thread in scan(file, directory).threads if thread.tid == os.getpid()]
    assert [thread.holds for thread in me] == [()]


def test_an_ended_thread_keeps_its_row(directory: Path) -> None:
    file = SharedFile()
    file.add_thread(4_000_000, name=b"gone\0".ljust(16, b"\0"))
    gone = next(thread for thread in scan(file, directory).threads if thread.tid == 4_000_000)
    assert (gone.alive, gone.name) == (False, "gone")


def test_wait_stacks_include_ended_threads_and_ongoing_holds(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=1, retired_acquisitions=1)
    here, there = file.add_stack([1]), file.add_stack([2])
    file.add_retired_site(lock, here, 1, SECOND)
    thread = file.add_thread(os.getpid())
    file.give_sites(
        thread, 4, [{"lock": lock, "stack": here, "count": 2, "wait_ticks": 2 * SECOND}]
    )
    file.hold(thread, lock, MUTEX, lib.LT_HELD_TIMED | lib.LT_HELD_CONTENDED)
    thread.held_inline[0].stack, thread.held_inline[0].wait_ticks = there, SECOND
    stacks = scan(file, directory).locks[0].wait_stacks
    assert [(s.stack, s.count, round(s.wait_s)) for s in stacks] == [(here, 3, 3), (there, 1, 1)]


def test_the_longest_wait_is_no_shorter_than_the_mean(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    thread, stack = file.add_thread(os.getpid()), file.add_stack([1])
    file.give_slots(thread, 2, [{"key": MUTEX, "lock": lock, "acquisitions": 2, "contended": 2,
                                 "wait_ticks": 4 * SECOND, "wait_max": SECOND}])  # fmt: skip
    waits = {"lock": lock, "stack": stack, "count": 2, "wait_ticks": 4 * SECOND}
    file.give_sites(thread, 2, [waits])
    found = scan(file, directory).locks[0]
    assert found.wait_max_s == pytest.approx(found.wait_s / found.contended)


def test_records_written_before_the_first_scan_are_read(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    thread = file.add_thread(os.getpid())
    written = [record(tid=os.getpid(), lock=lock, start=n, wait=1) for n in range(20)]
    file.give_ring(thread, 8, written)
    snapshot = scan(file, directory)
    # The oldest of 8 slots may be half overwritten, so 7 slots can be trusted.
    assert len(snapshot.events) == 7
    assert snapshot.lost_events == 13
    assert [event.lock for event in snapshot.events] == [lock] * 7


@pytest.mark.parametrize(("seen", "found"), [(True, 1), (False, 0)])
def test_waiters_name_the_holder_of_a_lock_without_an_entry(
    directory: Path, second_tid: int, seen: bool, found: int
) -> None:
    """The holder took the lock before the lock had an entry.

    The library does not record a release by another thread then, so the held list proves nothing.
    """
    file = SharedFile()
    tids, keys = (os.getpid(), second_tid), (MUTEX, OTHER_MUTEX)
    locks = [file.add_lock(lib.LT_KIND_MUTEX, address) for address in (0x1000, 0x2000)]
    for n in (0, 1):
        thread = file.add_thread(tids[n])
        file.hold(thread, 0, keys[n])
        saw = tids[1 - n] if seen else 0
        file.wait(thread, locks[1 - n], keys[1 - n], since=time.monotonic_ns(), holder=saw)
    snapshot = scan(file, directory)
    assert len(snapshot.deadlocks) == found
    held = {thread.tid: [hold.lock for hold in thread.holds] for thread in snapshot.threads}
    for n in (0, 1):  # sorted by tid: the second thread may have the lower tid
        assert held[tids[n]] == [locks[n] if seen else 0]


def test_a_lock_among_other_locks_names_no_holder(directory: Path, second_tid: int) -> None:
    """The holder of one of the "other locks" need not hold the requested lock."""
    file = SharedFile()
    file.wait(file.add_thread(os.getpid()), 0, MUTEX, since=time.monotonic_ns())
    file.hold(file.add_thread(second_tid), 0, OTHER_MUTEX)
    threads = {thread.tid: thread for thread in scan(file, directory).threads}
    wait = threads[os.getpid()].waiting_for
    assert wait is not None
    assert wait.holders == ()
