"""The holders and waiters of locks in one scan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support.shared_file import key, monotonic_clock
from unit.builders.raw_threads import (
    NOW,
    SECOND,
    by_tid,
    held_record,
    raw_thread,
    tasks,
    wait_block,
)

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import LockUse
from locktop.collector.native import lib
from locktop.collector.shm.layout import UseRecord
from locktop.collector.sources.preload.lock_state import (
    LockState,
    ScanContext,
    forget_former_owners,
    has_signalled,
    held_by_lock,
    lock_states,
    presumed_holders,
)

MUTEX, RWLOCK = key(lib.LT_KIND_MUTEX, 0x1000), key(lib.LT_KIND_RWLOCK, 0x1000)
SEM, COND = key(lib.LT_KIND_SEM, 0x1000), key(lib.LT_KIND_COND, 0x1000)
SHARED = lib.LT_HELD_SHARED
TENTH = SECOND // 10


def test_a_lock_that_changes_hands_has_no_presumed_holder() -> None:
    clock = monotonic_clock()
    assert presumed_holders([7], TENTH + 1, clock) == [7]
    assert presumed_holders([7], TENTH, clock) == []
    assert presumed_holders([7, 8], SECOND, clock) == []
    assert presumed_holders([], SECOND, clock) == []


class Asleep(KernelThreads):
    """Threads that sleep."""

    def __init__(self, *asleep: int) -> None:
        self._asleep = asleep

    def are_asleep(self, tids: Iterable[int]) -> bool:
        return all(tid in self._asleep for tid in tids)


def test_an_owner_whose_waiters_do_not_sleep_is_a_former_owner() -> None:
    def published(waited: int, asleep: Asleep, *holders: int) -> list[int]:
        state = LockState(
            waiters=[(waited, 11, 0), (1, 12, 0)], published=[7], holders=list(holders)
        )
        forget_former_owners({1: state}, asleep, monotonic_clock())
        return state.published

    assert published(SECOND, Asleep(11)) == []
    assert published(SECOND, Asleep(11, 12)) == [7]
    assert published(TENTH, Asleep()) == [7]  # nobody presumes the owner anyway
    assert published(SECOND, Asleep(), 9) == [7]


def test_of_two_writers_the_later_one_holds_the_lock() -> None:
    first = raw_thread(11, held=[held_record(MUTEX), held_record(SEM, 2)])
    second = raw_thread(12, held=[held_record(MUTEX)])
    found = held_by_lock([first, second])
    assert [thread.block.tid for thread, _ in found[1]] == [12]
    assert [thread.block.tid for thread, _ in found[2]] == [11]


@pytest.mark.parametrize(
    ("flags", "holders"),
    [((SHARED, SHARED), [11, 12]), ((SHARED, 0), [12]), ((0, SHARED), [12])],
)
def test_readers_hold_a_lock_together(flags: tuple[int, int], holders: list[int]) -> None:
    threads = [
        raw_thread(tid, held=[held_record(RWLOCK, flags=flag)])
        for tid, flag in zip((11, 12), flags, strict=True)
    ]
    assert [thread.block.tid for thread, _ in held_by_lock(threads)[1]] == holders


def test_a_reader_that_holds_a_lock_twice_is_one_holder() -> None:
    twice = [held_record(RWLOCK, flags=SHARED, since=1), held_record(RWLOCK, flags=SHARED)]
    ((_, entry),) = held_by_lock([raw_thread(11, held=twice)])[1]
    assert entry.since == 1


def test_a_living_thread_is_the_holder_where_an_ended_one_lists_the_lock_too() -> None:
    living, ended = (raw_thread(tid, held=[held_record(MUTEX)]) for tid in (11, 12))
    assert lock_states([living, ended], tasks(11))[1].holders == [11]
    assert lock_states([living, ended], tasks(12))[1].holders == [12]


def test_only_timed_holds_that_go_on_count_as_time() -> None:
    threads = [
        raw_thread(11, held=[held_record(RWLOCK, flags=SHARED, since=NOW - 3 * SECOND, site=5)]),
        raw_thread(12, held=[held_record(RWLOCK, flags=SHARED, since=NOW - 2 * SECOND)]),
        raw_thread(13, held=[held_record(RWLOCK, flags=SHARED)]),
        raw_thread(14, held=[held_record(RWLOCK, flags=SHARED, since=NOW + 1)]),
    ]
    state = lock_states(threads, tasks(11, 12, 13, 14))[1]
    assert (state.hold_ticks, state.hold_max, state.holds_timed) == (5 * SECOND, 3 * SECOND, 3)
    assert state.held[0] == (11, 5, 0)


def test_a_holder_that_waits_itself_is_known_with_that_lock() -> None:
    holder = raw_thread(11, wait_block(MUTEX, 9), held=[held_record(MUTEX)])
    assert lock_states([holder], tasks(11))[1].held == [(11, 0, 9)]


def test_waiters_have_the_time_of_their_wait_and_its_stack() -> None:
    threads = [
        raw_thread(11, wait_block(MUTEX, since=NOW - SECOND, stack=5)),
        raw_thread(12, wait_block(MUTEX, since=NOW + SECOND)),
        raw_thread(13, wait_block(MUTEX)),
    ]
    state = lock_states(threads, tasks(11, 12))[1]
    assert state.waiters == [(SECOND, 11, 5), (0, 12, 0)]


def test_the_holders_that_waiters_saw_are_living_ones_each_once() -> None:
    seen = {11: 20, 12: 21, 13: 20, 14: 22}
    threads = [raw_thread(tid, wait_block(MUTEX, holder=holder)) for tid, holder in seen.items()]
    state = lock_states(threads, tasks(11, 12, 13, 14, 20, 21))[1]
    assert state.published == [20, 21]
    idle = raw_thread(11, wait_block(COND, holder=20))
    assert lock_states([idle], tasks(11, 20))[1].published == []


def test_holders_of_a_lock_are_the_living_ones() -> None:
    context = ScanContext({}, {1: LockState(holders=[11, 12])}, tasks(12))
    assert context.holders(1) == (12,)
    assert context.holders(2) == ()


def test_waited_for_objects_without_an_owner_are_semaphores_conditions_and_barriers() -> None:
    kinds = {n: getattr(lib, f"LT_KIND_{name}") for n, name in enumerate(
        ("MUTEX", "RWLOCK", "SEM", "COND", "BARRIER", "JOIN")
    )}  # fmt: skip
    threads = by_tid(
        *(raw_thread(20 + n, wait_block(key(kind, 0x10), n)) for n, kind in kinds.items()),
        raw_thread(30),
    )
    assert ScanContext(threads, {}, {}).unowned == {2, 3, 4}


def test_a_join_waits_for_a_living_thread() -> None:
    join = wait_block(key(lib.LT_KIND_JOIN, 0x7000))
    threads = by_tid(
        raw_thread(11, join), raw_thread(12, pthread=0x7000), raw_thread(13, pthread=0x8000)
    )
    assert ScanContext(threads, {}, tasks(11, 12, 13)).awaited_thread(join) == 12
    assert ScanContext(threads, {}, tasks(11, 13)).awaited_thread(join) == 0
    mutex = wait_block(key(lib.LT_KIND_MUTEX, 0x7000))
    assert ScanContext(threads, {}, tasks(11, 12, 13)).awaited_thread(mutex) == 0


def use(
    lock: int, acquisitions: int, signals: int, kind: int = lib.LT_KIND_SEM, taken_at: int = 0
) -> UseRecord:
    taken = acquisitions if kind == lib.LT_KIND_SEM else 0
    return UseRecord(
        lock=lock, kind=kind, has_signalled=int(signals > taken), acquisitions=acquisitions,
        signals=signals, life=0, taken_at=taken_at,
    )  # fmt: skip


def test_the_uses_are_those_of_waited_for_objects_alone() -> None:
    waiter = raw_thread(11, wait_block(SEM, 1), uses=[use(1, 4, 3), use(2, 5, 5)])
    context = ScanContext(by_tid(waiter), {}, tasks(11))
    assert context.uses(waiter, waiter.uses()) == (LockUse(lock=1, acquisitions=4, signals=3),)


@pytest.mark.parametrize(
    ("taken_at", "call_site"),
    [
        (0x5500, {"site": 0x5500}),
        (0x5500 | 1 << lib.LT_TAKEN_MORE_BIT, {"site": 0x5500, "took_more": True}),
        (9 | 1 << lib.LT_TAKEN_STACK_BIT, {"stack": 9}),
        (
            9 | 1 << lib.LT_TAKEN_STACK_BIT | 1 << lib.LT_TAKEN_MORE_BIT,
            {"stack": 9, "took_more": True},
        ),
    ],
)
def test_a_use_says_where_the_first_unit_was_taken(
    taken_at: int, call_site: dict[str, Any]
) -> None:
    waiter = raw_thread(11, wait_block(SEM, 1), uses=[use(1, 4, 3, taken_at=taken_at)])
    context = ScanContext(by_tid(waiter), {}, tasks(11))
    assert context.uses(waiter, waiter.uses()) == (
        LockUse(lock=1, acquisitions=4, signals=3, **call_site),
    )


def test_uses_without_room_are_unknown() -> None:
    for count, known in ((lib.LT_USES, True), (lib.LT_USES + 1, False)):
        waiter = raw_thread(11, wait_block(SEM, 1), use_count=count)
        context = ScanContext(by_tid(waiter), {}, tasks(11))
        assert (context.uses(waiter, []) is not None) is known


@pytest.mark.parametrize(
    ("uses", "signals"),
    [
        ([], False),
        ([use(1, 3, 3)], False),
        ([use(1, 3, 4)], True),
        ([use(1, 3, 2), use(2, 0, 1)], True),
        ([use(1, 3, 1, lib.LT_KIND_COND)], True),
        ([use(1, 3, 0, lib.LT_KIND_COND)], False),
    ],
)
def test_a_thread_signals_that_posts_more_than_it_takes(
    uses: list[UseRecord], signals: bool
) -> None:
    assert has_signalled(uses) is signals
