"""A snapshot with indexes: names, and chains of waiting threads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import blocking, full_report, records, scenarios

from locktop.collector.model import (
    Frame,
    Held,
    Kind,
    Snapshot,
    Thread,
    ThreadElsewhere,
    ThreadState,
)
from locktop.collector.render.words.snapshot_index import (
    SnapshotIndex,
    is_contention,
    is_stuck_waiting,
    only_waits_for_work,
)

NORMAL = SnapshotIndex(scenarios.normal())
STUCK = SnapshotIndex(scenarios.deadlock())


def test_a_join_of_an_unknown_thread_has_a_name() -> None:
    unknown = replace(records.lock(9, "join 0x0", Kind.JOIN), address=0)
    known = records.lock(8, "join 0x7f00", Kind.JOIN)
    index = SnapshotIndex(records.snapshot((), (unknown, known)))
    assert index.lock_name(9) == "thread join"
    assert index.lock_name(8) == "join 0x7f00"


def test_a_chain_ends_where_it_closes_a_circle() -> None:
    chain = [thread.tid for thread in SnapshotIndex(scenarios.deadlock()).chain(4730)]
    assert chain == [4730, 4731, 4732]


def test_threads_of_one_name_have_different_labels() -> None:
    calm = scenarios.normal()
    same = tuple(replace(t, name="ThreadPoolForeg") for t in calm.threads[:3])
    index = SnapshotIndex(replace(calm, threads=same + calm.threads[3:]))
    assert index.thread_name(4711) == "ThreadPo:4711"
    assert index.thread_name(4712) == "ThreadPo:4712"
    assert index.thread_name(4715) == "reader"
    assert index.thread_name(99) == "99"


def test_the_threads_that_wait_in_contention_are_sorted_by_wait() -> None:
    assert [thread.tid for thread in NORMAL.waiting] == [4715, 4712, 4713]
    assert [thread.tid for thread in NORMAL.waiters_of(1)] == [4712, 4713]
    assert NORMAL.waiters_of(5) == [], "waits for work"
    assert [is_stuck_waiting(NORMAL.threads[tid]) for tid in (4711, 4712, 4714)] == [
        False,
        True,
        False,
    ]
    assert [is_contention(NORMAL.locks[number]) for number in (1, 4, 5)] == [True, True, False]


def test_a_deadlock_has_its_threads_and_locks() -> None:
    assert STUCK.stuck_threads == {4730, 4731, 4732}
    assert STUCK.stuck_locks == {10, 11, 12}
    assert len(STUCK.deadlock_reports) == len(STUCK.deadlocks) == 1
    assert NORMAL.deadlock_reports == NORMAL.deadlocks == ()
    assert not STUCK.stuck_threads & STUCK.group_of.keys()


def restless(count: int) -> Snapshot:
    """Threads of one pool: some of them wait for a moment, the other ones run."""
    threads = [
        records.thread(
            10 + n,
            f"http-{n}",
            ThreadState.WAITING if n % 2 else ThreadState.RUNNING,
            waiting_for=records.wait(1, Kind.MUTEX, 0.99) if n % 2 else None,
        )
        for n in range(count)
    ]
    return records.snapshot(tuple(threads), (records.lock(1, "g_lock"),))


@pytest.mark.parametrize(
    ("snapshot", "sizes"),
    [
        (scenarios.pools(each=2), []),
        (scenarios.pools(each=3), [3] * 6),
        (restless(7), []),
        (restless(8), [8]),
    ],
)
def test_a_group_has_three_threads_or_eight_restless_ones(
    snapshot: Snapshot, sizes: list[int]
) -> None:
    index = SnapshotIndex(snapshot)
    assert [len(group.threads) for group in index.groups.values()] == sizes
    assert len(index.group_of) == sum(sizes)


def test_a_group_is_idle_if_all_of_its_threads_are() -> None:
    index = SnapshotIndex(scenarios.pools(each=3))
    idle = [group.name for group in index.groups.values() if index.is_idle(group)]
    assert idle == ["http-#", "cache-#", "gc-#"]
    assert [index.is_idle(index.threads[tid]) for tid in (0, 1000, 9001)] == [False, True, False]


IDLE, WAITS, RUNS = ThreadState.IDLE, ThreadState.WAITING, ThreadState.RUNNING
WORK, LONG_WORK = records.wait(5, Kind.COND, 0.5), records.wait(5, Kind.COND, 2.0)
HELD, LONG_HELD = Held(1, 0, 0.5), Held(1, 0, 1.0)


@pytest.mark.parametrize(
    ("state", "fields", "idle"),
    [
        (IDLE, {"waiting_for": LONG_WORK}, True),
        (IDLE, {"waiting_for": LONG_WORK, "holds": (HELD,)}, False),
        (IDLE, {"waiting_for": LONG_WORK, "wait_share": 0.04}, True),
        (IDLE, {"waiting_for": LONG_WORK, "wait_share": 0.05}, False),
        (RUNS, {}, False),
        (RUNS, {"idle_share": 0.9}, True),
        (RUNS, {"idle_share": 0.89}, False),
        (RUNS, {"idle_share": 0.9, "holds": (HELD,)}, True),
        (RUNS, {"idle_share": 0.9, "holds": (LONG_HELD,)}, False),
        (RUNS, {"idle_share": 0.9, "holds": (Held(1, 0, None),)}, True),
        (IDLE, {"idle_share": 0.9, "waiting_for": WORK, "holds": (HELD,)}, False),
        (WAITS, {"idle_share": 0.9, "waiting_for": LONG_WORK}, False),
        (WAITS, {"alive": False, "waiting_for": WORK}, False),
        (RUNS, {"alive": False}, True),
    ],
)
def test_only_waits_for_work(state: ThreadState, fields: dict[str, object], idle: bool) -> None:
    assert only_waits_for_work(records.thread(11, "w", state, **fields)) is idle


def test_the_waits_behind_waiters_count_for_the_lock_they_lead_to() -> None:
    index = SnapshotIndex(blocking.pool_behind_index(workers=10))
    assert index.behind_waiters == {blocking.INDEX: 10}
    assert index.chained_wait_s == {blocking.INDEX: 10 * 11.0}
    brief = SnapshotIndex(blocking.pool_behind_index(workers=10, duration_s=1.01))
    assert brief.chained_wait_s == {blocking.INDEX: pytest.approx(10 * 0.01)}
    assert (NORMAL.behind_waiters, NORMAL.chained_wait_s) == ({}, {})


@pytest.mark.parametrize(
    ("changes", "waited", "lately"),
    [
        ({}, "3 %", "3 %"),
        ({"level": "dormant"}, "-", "3 %"),
        ({"level": "dormant", "ended": True}, "3 %", "3 %"),
        ({"interval_s": 0.0}, "-", "-"),
    ],
)
def test_a_figure_that_was_not_measured_is_a_dash(
    changes: dict[str, object], waited: str, lately: str
) -> None:
    index = SnapshotIndex(replace(scenarios.normal(), **changes))
    assert (index.waited("3 %"), index.lately("3 %")) == (waited, lately)


def test_holders_are_named_with_their_number_and_with_doubt() -> None:
    index = SnapshotIndex(full_report.everything())
    assert index.holders((), 1) == ""
    assert index.holders((4714,), 1) == "worker-2?"
    assert index.holders((4716,), 2) == "journal"
    assert index.holders((4810, 4811), 7) == "worker of convert 4802 +1"
    assert index.holders((4711,), 99) == "store"
    assert index.lock_name(99) == "lock 99"


def test_a_thread_of_another_process_has_its_name() -> None:
    calm = replace(scenarios.normal(), threads_elsewhere=(ThreadElsewhere(9, 8, "convert"),))
    assert SnapshotIndex(calm).thread_name(9) == "convert 8"


def test_the_source_locations_of_holds_and_waits() -> None:
    assert NORMAL.held(4714, 1) == Held(1, 0x401100, 0.0931)
    assert [NORMAL.held(4714, 2), NORMAL.held(99, 1)] == [None, None]
    assert NORMAL.held_site(4714, 1) == "cache_put cache.c:88"
    assert NORMAL.held_site(4714, 2) == ""
    assert [NORMAL.site(0), NORMAL.site(0x99)] == ["", "0x99"]
    assert NORMAL.stack_top(1) == "cache_get cache.c:42"
    assert NORMAL.stack_top(99) == ""
    assert NORMAL.stack(99) == ()


WRAPPER = Frame(0x10, "std::mutex::lock", "/usr/include/c++/12/bits/std_mutex.h", 100, "app", 0)


def waits(stack: int, site: int) -> Thread:
    wait = replace(records.wait(1, Kind.MUTEX, 1.0, stack=stack), site=site)
    return records.thread(11, "w", ThreadState.WAITING, waiting_for=wait)


@pytest.mark.parametrize(
    ("thread", "function"),
    [
        (waits(1, 0x401300), "cache_get"),
        (waits(8, 0x401300), "std::mutex::lock"),
        (waits(99, 0x401300), "journal_write"),
        (waits(99, 0x99), None),
        (records.thread(11, "w", ThreadState.RUNNING), None),
    ],
)
def test_where_in_the_code_a_thread_waits(thread: Thread, function: str | None) -> None:
    calm = scenarios.normal()
    index = SnapshotIndex(replace(calm, stacks={**calm.stacks, 8: (WRAPPER,)}))
    frame = index.wait_frame(thread)
    assert (frame.function if frame is not None else None) == function


def test_a_chain_ends_at_a_thread_without_a_known_holder() -> None:
    assert [thread.tid for thread in NORMAL.chain(4712)] == [4712, 4714]
    assert [thread.tid for thread in NORMAL.chain(4711)] == [4711]
    assert list(NORMAL.chain(99)) == []


def test_a_class_has_the_sums_of_its_locks() -> None:
    index = SnapshotIndex(scenarios.fleet(connections=3))
    lock_class = index.classes[Kind.MUTEX, "conn::mu"]
    assert [lock.id for lock in index.members(lock_class)] == [1000, 1001, 1002]
    assert index.class_of[1001] is lock_class
    assert index.name_in_class(index.locks[1001], lock_class) == "at 0x55d000010a40"
    assert [(one.stack, one.count) for one in index.class_wait_stacks(lock_class)] == [
        (1, 200),
        (2, 100),
    ]
    assert index.class_blame(lock_class) == ()
