"""The threads of a snapshot from the blocks of one reading."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.shared_file import key, monotonic_clock
from unit.builders.raw_threads import (
    NOW,
    SECOND,
    held_record,
    raw_thread,
    tasks,
    wait_block,
)

from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import Held, Kind, LockUse, Thread, ThreadState, Wait
from locktop.collector.native import lib
from locktop.collector.shm.layout import UseRecord, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload.lock_state import lock_states
from locktop.collector.sources.preload.thread_builder import ThreadBuilder

TID, OTHER = 11, 12
MUTEX, COND = key(lib.LT_KIND_MUTEX, 0x1000), key(lib.LT_KIND_COND, 0x2000)
SPIN = key(lib.LT_KIND_SPIN, 0x3000)
BARRIER = key(lib.LT_KIND_BARRIER, 0x4000)


class Threads:
    """A builder, scan after scan."""

    def __init__(self) -> None:
        self.builder = ThreadBuilder(monotonic_clock())
        self.tasks: dict[int, KernelThread] = dict(tasks(TID, OTHER))

    def all(self, *raws: RawThread, counts: bool = True) -> dict[int, Thread]:
        newest = {raw.block.tid: raw for raw in raws}
        states = lock_states(raws, self.tasks)
        found = self.builder.build(newest, states, self.tasks, 0.0, counts)
        assert [thread.tid for thread in found] == sorted(newest.keys() | self.tasks.keys())
        return {thread.tid: thread for thread in found}

    def one(self, *raws: RawThread, counts: bool = True) -> Thread:
        return self.all(*raws, counts=counts)[TID]


@pytest.fixture
def threads() -> Threads:
    return Threads()


def waits(wait: WaitBlock | None, **fields: Any) -> RawThread:
    return raw_thread(TID, wait, **fields)


def by_kind(**by_name: int) -> tuple[tuple[int, int], ...]:
    return tuple((getattr(lib, f"LT_KIND_{name}"), value) for name, value in by_name.items())


def wait_of(thread: Thread) -> Wait:
    assert thread.waiting_for is not None
    return thread.waiting_for


def test_a_thread_has_the_figures_of_its_block(threads: Threads) -> None:
    raw = replace(
        waits(None),
        acquisitions=8,
        contended=2,
        wait_ticks=by_kind(MUTEX=2 * SECOND, COND=3 * SECOND),
    )
    thread = threads.one(raw)
    assert (thread.acquisitions, thread.contended) == (8, 2)
    assert thread.wait_s == {Kind.MUTEX: 2.0, Kind.COND: 3.0}
    assert (thread.alive, thread.waiting_for, thread.holds) == (True, None, ())


def test_a_wait_has_its_lock_and_its_length(threads: Threads) -> None:
    flags = lib.LT_WAIT_TIMED | lib.LT_WAIT_SHARED
    wait = wait_block(MUTEX, 3, since=NOW - 2 * SECOND, stack=4, site=5, holder=OTHER, flags=flags,
                      parties=7)  # fmt: skip
    found = wait_of(thread := threads.one(waits(wait)))
    assert (found.lock, found.kind, found.duration_s) == (3, Kind.MUTEX, 2.0)
    assert (found.stack, found.site, found.seq, found.holder_seen) == (4, 5, 2, OTHER)
    assert (found.timed, found.shared, found.pshared) == (True, True, False)
    assert (found.parties, found.awaits, found.idle) == (0, 0, False)
    assert found.holders == (OTHER,)  # presumed: a living thread that lasts
    assert thread.wait_s == {Kind.MUTEX: 2.0}
    assert thread.state is ThreadState.WAITING
    shared = wait_of(threads.one(waits(wait._replace(flags=lib.LT_WAIT_PSHARED))))
    assert (shared.timed, shared.shared, shared.pshared) == (False, False, True)


def test_a_wait_for_work_is_idle_and_names_no_holder(threads: Threads) -> None:
    wait = wait_block(COND, 3, since=NOW - 2 * SECOND, holder=OTHER)
    found = wait_of(thread := threads.one(waits(wait)))
    assert (found.idle, found.holders) == (True, ())
    assert thread.state is ThreadState.IDLE
    assert thread.wait_s == {Kind.COND: 2.0}


def test_a_barrier_releases_its_parties(threads: Threads) -> None:
    assert wait_of(threads.one(waits(wait_block(BARRIER, parties=7)))).parties == 7


def test_a_join_awaits_the_thread(threads: Threads) -> None:
    wait = wait_block(key(lib.LT_KIND_JOIN, 0x7000))
    found = threads.one(waits(wait), raw_thread(OTHER, pthread=0x7000))
    assert wait_of(found).awaits == OTHER


def test_the_holders_of_a_lock_are_those_that_list_it(threads: Threads) -> None:
    wait = wait_block(MUTEX, 3, since=NOW - 2 * SECOND, holder=TID)
    found = threads.one(waits(wait), raw_thread(OTHER, held=[held_record(MUTEX, 3)]))
    assert wait_of(found).holders == (OTHER,)
    nobody = threads.one(waits(wait_block(MUTEX, 3, since=NOW - 2 * SECOND)))
    assert wait_of(nobody).holders == ()


def test_a_wait_for_other_locks_names_no_holder(threads: Threads) -> None:
    wait = wait_block(MUTEX, 0, since=NOW - 2 * SECOND, holder=OTHER)
    assert wait_of(threads.one(waits(wait))).holders == ()


def test_a_kind_that_is_not_known_is_no_wait(threads: Threads) -> None:
    assert threads.one(waits(wait_block(key(99, 0)))).waiting_for is None


def test_a_dead_thread_waits_for_nothing_and_keeps_its_holds(threads: Threads) -> None:
    raw = waits(wait_block(MUTEX), held=[held_record(MUTEX, 3)])
    threads.tasks.pop(TID)
    thread = threads.one(raw)
    assert (thread.alive, thread.waiting_for) == (False, None)
    assert [held.lock for held in thread.holds] == [3]


def test_a_hold_has_its_length_where_it_is_timed(threads: Threads) -> None:
    held = [
        held_record(MUTEX, 3, since=NOW - SECOND, site=5, depth=2),
        held_record(MUTEX, 4, flags=lib.LT_HELD_SHARED),
    ]
    assert threads.one(waits(None, held=held)).holds == (
        Held(lock=3, site=5, duration_s=1.0, depth=2, shared=False),
        Held(lock=4, site=0, duration_s=None, depth=0, shared=True),
    )


def test_a_name_stays_after_the_end_of_its_thread(threads: Threads) -> None:
    raw = waits(None)
    assert threads.one(raw).name == "t11"
    threads.tasks.pop(TID)
    assert threads.one(raw).name == "t11"
    assert threads.one(waits(None, name=b"own\0\0")).name == "own"


def test_a_thread_that_the_library_does_not_know_has_no_figures(threads: Threads) -> None:
    threads.tasks[TID] = replace(threads.tasks[TID], cpu_s=3.0)
    thread = threads.one()
    assert (thread.alive, thread.waiting_for, thread.holds) == (True, None, ())
    assert (thread.wait_s, thread.acquisitions, thread.cpu_s) == ({}, 0, 3.0)
    assert thread.wait_share == 0.0


def test_the_cpu_time_of_a_dead_thread_is_the_last_known(threads: Threads) -> None:
    threads.tasks[TID] = replace(threads.tasks[TID], cpu_s=3.0)
    threads.one(waits(None))
    threads.tasks.pop(TID)
    assert threads.one(waits(None)).cpu_s == 3.0
    assert Threads().one(waits(None)).cpu_s == 0.0


def later(
    raw: RawThread, wait: WaitBlock | None, duration_s: float = 2.0, **ticks: int
) -> RawThread:
    """Return the thread after some seconds, with other waits."""
    now = raw.now + int(duration_s * SECOND)
    wait_ticks = by_kind(**ticks) if ticks else raw.wait_ticks
    return replace(raw, now=now, wait=wait, wait_ticks=wait_ticks)


def test_shares_are_waits_of_the_interval(threads: Threads) -> None:
    first = waits(None)
    threads.one(first)
    second = later(first, None, MUTEX=SECOND // 2, COND=SECOND)
    thread = threads.one(second)
    assert (thread.wait_share, thread.idle_share) == (0.25, 0.5)
    third = later(second, wait_block(MUTEX, since=second.now + SECOND))
    thread = threads.one(third)
    assert (thread.wait_share, thread.idle_share) == (0.5, 0.0)
    fourth = later(third, wait_block(COND, since=third.now + SECOND), MUTEX=2 * SECOND, COND=SECOND)
    thread = threads.one(fourth)
    assert (thread.wait_share, thread.idle_share) == (0.25, 0.5)


def test_the_first_scan_has_no_shares(threads: Threads) -> None:
    thread = threads.one(waits(wait_block(MUTEX, since=NOW - 5 * SECOND)))
    assert (thread.wait_share, thread.idle_share, thread.time) == (0.0, 0.0, None)


def test_spinning_is_contention_but_no_sleep(threads: Threads) -> None:
    first = waits(None)
    threads.tasks[TID] = replace(threads.tasks[TID], at_s=1.0)
    threads.one(first)
    threads.tasks[TID] = replace(threads.tasks[TID], at_s=3.0, cpu_s=1.0)
    thread = threads.one(later(first, None, SPIN=SECOND, MUTEX=SECOND // 2))
    assert thread.wait_share == 0.75
    assert thread.time is not None
    assert thread.time.contended == pytest.approx(0.25)
    assert thread.time.cpu == pytest.approx(0.5)


@pytest.mark.parametrize(("key_", "shares"), [(MUTEX, (1.0, 0.0)), (COND, (0.0, 1.0))])
def test_a_thread_that_sleeps_on_has_the_figures_of_a_fresh_reading(
    threads: Threads, key_: int, shares: tuple[float, float]
) -> None:
    held = [held_record(MUTEX, 9, since=NOW - SECOND)]
    wait = wait_block(key_, 3, since=NOW - SECOND)
    raw = replace(waits(wait, held=held), wait_ticks=by_kind(MUTEX=SECOND, COND=SECOND))
    first = threads.one(raw)
    raw.now += 2 * SECOND
    again = threads.one(raw)
    fresh = Threads().one(raw)
    assert again.waiting_for == fresh.waiting_for
    assert (again.wait_s, again.holds) == (fresh.wait_s, fresh.holds)
    assert (again.wait_share, again.idle_share) == shares
    assert wait_of(again).duration_s == wait_of(first).duration_s + 2.0
    raw.now += 2 * SECOND
    third = threads.one(raw)
    assert (third.wait_share, third.idle_share) == shares
    assert third.wait_s == Threads().one(raw).wait_s
    done = later(raw, None, 2.0, MUTEX=SECOND + (6 * SECOND if key_ == MUTEX else 0),
                 COND=SECOND + (6 * SECOND if key_ == COND else 0))  # fmt: skip
    over = threads.one(done)
    assert (over.wait_share + over.idle_share, over.waiting_for) == (0.5, None)


def test_a_sleeper_learns_of_new_holders(threads: Threads) -> None:
    raw = waits(wait_block(MUTEX, 3))
    threads.one(raw)
    holder = raw_thread(OTHER, held=[held_record(MUTEX, 3)])
    assert wait_of(threads.one(raw, holder)).holders == (OTHER,)
    join = waits(wait_block(key(lib.LT_KIND_JOIN, 0x7000)))
    other = Threads()
    other.one(join)
    assert wait_of(other.one(join, raw_thread(OTHER, pthread=0x7000))).awaits == OTHER


def use(lock: int, acquisitions: int, signals: int) -> UseRecord:
    return UseRecord(
        lock=lock, kind=lib.LT_KIND_SEM, has_signalled=int(signals > acquisitions),
        acquisitions=acquisitions, signals=signals, life=0, taken_at=0,
    )  # fmt: skip


def test_uses_are_known_while_a_thread_waits_for_an_object_without_an_owner(
    threads: Threads,
) -> None:
    user = raw_thread(OTHER, uses=[use(3, 1, 5)])
    found = threads.all(waits(wait_block(COND, 3)), user)
    assert found[OTHER].uses == (LockUse(lock=3, acquisitions=1, signals=5),)
    assert (found[OTHER].signals, found[TID].signals) == (True, False)
    assert found[TID].uses == ()
    without = threads.all(waits(wait_block(MUTEX, 3)), user)
    assert (without[OTHER].uses, without[OTHER].signals) == ((), False)


def test_waiting_threads_have_what_a_deadlock_needs(threads: Threads) -> None:
    wait = wait_block(COND, 3, since=NOW - SECOND)
    raws = {
        TID: waits(wait, held=[held_record(MUTEX, 4)]),
        OTHER: raw_thread(OTHER, uses=[use(3, 1, 5)]),
        13: raw_thread(13),
    }
    found = {
        thread.tid: thread
        for thread in threads.builder.waiting_threads(raws, tasks(TID, OTHER, 14))
    }
    assert found.keys() == {TID, OTHER, 13, 14}
    assert [thread.alive for _, thread in sorted(found.items())] == [True, True, False, True]
    assert wait_of(found[TID]).lock == 3
    assert [held.lock for held in found[TID].holds] == [4]
    assert found[OTHER].uses == (LockUse(lock=3, acquisitions=1, signals=5),)
    assert found[14].waiting_for is None


def test_a_sleeper_whose_kernel_figures_changed_is_made_anew(threads: Threads) -> None:
    raw = waits(wait_block(MUTEX, 3))
    threads.one(raw)
    threads.tasks[TID] = replace(threads.tasks[TID], name="renamed", cpu_s=4.0)
    raw.now += SECOND
    thread = threads.one(raw)
    assert (thread.name, thread.cpu_s) == ("renamed", 4.0)


@pytest.mark.parametrize(
    ("is_known", "counts", "unknown"),
    [(True, True, False), (True, False, True), (False, True, True)],
)
def test_waits_are_unknown_where_the_library_does_not_count(
    threads: Threads, is_known: bool, counts: bool, unknown: bool
) -> None:
    raws = [waits(None)] if is_known else []
    threads.tasks[TID] = replace(threads.tasks[TID], at_s=1.0)
    threads.one(*raws, counts=counts)
    threads.tasks[TID] = replace(threads.tasks[TID], at_s=2.0)
    time = threads.one(*raws, counts=counts).time
    assert time is not None
    assert ("contended" in time.unknown) is unknown
