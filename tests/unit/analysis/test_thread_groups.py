"""Threads with the same activity form groups."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis import lock_classes, thread_groups
from locktop.collector.analysis.thread_groups import common_name
from locktop.collector.model import Held, Kind, Lock, Thread, ThreadGroup, ThreadState
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report


def groups_of(
    threads: list[Thread],
    locks: list[Lock] | None = None,
    alone: frozenset[int] = frozenset(),
    restless: frozenset[int] = frozenset(),
) -> list[ThreadGroup]:
    by_id = {lock.id: lock for lock in locks or []}
    class_of = lock_classes.classes_by_lock(lock_classes.find(locks or []))
    return list(thread_groups.find(threads, by_id, class_of, alone, restless))


def waiter(tid: int, lock: int = 1, stack: int = 1, kind: Kind = Kind.MUTEX) -> Thread:
    state = ThreadState.WAITING if kind is Kind.MUTEX else ThreadState.IDLE
    wait = records.wait(lock, kind, float(tid), 900, stack=stack)
    return records.thread(tid, f"worker-{tid}", state, waiting_for=wait)


def tids(groups: list[ThreadGroup]) -> list[tuple[int, ...]]:
    return [group.tids for group in groups]


def test_one_lock_and_one_stack_make_a_group_sorted_by_wait() -> None:
    named = [records.lock(1, "g_queue_lock"), records.lock(2, "g_other")]
    groups = groups_of(
        [waiter(1), waiter(2), waiter(3, stack=2), waiter(4, lock=2), waiter(5)], named
    )
    assert tids(groups) == [(5, 2, 1), (3,), (4,)]
    assert groups[0].name == "worker-#"
    assert (groups[0].lock, groups[0].lock_name) == (1, "g_queue_lock")
    assert groups[0].holders == (900,)
    assert groups[0].wait is not None
    assert groups[0].wait.duration_s == 5.0


@pytest.mark.parametrize(
    "change",
    [
        {"state": ThreadState.OTHER},
        {"alive": False},
        {"holds": (Held(7, 0x10, 1.0),)},
    ],
)
def test_each_difference_makes_another_group(change: dict[str, object]) -> None:
    other = replace(waiter(3), **change)  # type: ignore[arg-type]
    assert tids(groups_of([waiter(1), waiter(2), other])) == [(2, 1), (3,)]


def test_threads_at_locks_of_one_class_are_one_group() -> None:
    locks = [records.lock(i, f"conns[{i}].ready", Kind.COND, waiters=(i,)) for i in (1, 2, 3)]
    (group,) = groups_of([waiter(i, lock=i, kind=Kind.COND) for i in (1, 2, 3)], locks)
    assert (group.lock, group.lock_name) == (0, "conns[].ready")


def test_threads_at_nameless_locks_of_their_own_are_one_group() -> None:
    locks = [records.lock(i, f"sem {0x1000 + i:#x}", Kind.SEM, waiters=(i,)) for i in (1, 2)]
    (group,) = groups_of([waiter(i, lock=i, kind=Kind.SEM) for i in (1, 2)], locks)
    assert (group.lock, group.lock_name, group.kind) == (0, "", Kind.SEM)
    shared = [replace(locks[0], waiters=(1, 3)), locks[1]]
    found = groups_of(
        [waiter(i, lock=2 if i == 2 else 1, kind=Kind.SEM) for i in (1, 2, 3)], shared
    )
    assert tids(found) == [(3, 1), (2,)]


def test_threads_at_nameless_locks_of_two_kinds_are_two_groups() -> None:
    kinds = {1: Kind.SEM, 2: Kind.COND}
    locks = [
        records.lock(i, f"{kind} {0x1000 + i:#x}", kind, waiters=(i,)) for i, kind in kinds.items()
    ]
    found = groups_of([waiter(i, lock=i, kind=kind) for i, kind in kinds.items()], locks)
    assert tids(found) == [(1,), (2,)]


def test_threads_without_a_wait_are_grouped_by_name() -> None:
    running = [records.thread(i, f"io-{i}", ThreadState.RUNNING) for i in (1, 2)]
    main = records.thread(3, "main", ThreadState.RUNNING)
    assert tids(groups_of([*running, main])) == [(1, 2), (3,)]


def test_some_threads_are_in_no_group() -> None:
    assert tids(groups_of([waiter(1), waiter(2), waiter(3)], alone=frozenset({2}))) == [
        (3, 1),
        (2,),
    ]


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["pool-1-thread-1", "pool-1-thread-12"], "pool-1-thread-#"),
        (["pool-1-thread-1", "pool-2-thread-1"], "pool-#-thread-1"),
        (["worker", "worker"], "worker"),
        (["io", "io-7"], "io*"),
        (["alpha", "beta"], "*"),
        (["", ""], ""),
        (["7", "12"], "#"),
    ],
)
def test_a_group_has_one_name_for_all_threads(names: list[str], common: str) -> None:
    assert common_name(names) == common


def test_each_thread_is_in_one_group() -> None:
    dice = random.Random(5)
    threads = [
        waiter(tid, dice.randrange(4), dice.randrange(3), dice.choice([Kind.MUTEX, Kind.COND]))
        if dice.random() < 0.7
        else records.thread(tid, f"t{dice.randrange(3)}", dice.choice(list(ThreadState)))
        for tid in range(500)
    ]
    groups = groups_of(threads)
    found = sorted(tid for group in groups for tid in group.tids)
    assert found == list(range(500))
    assert len({group.key for group in groups}) == len(groups)
    by_tid = {thread.tid: thread for thread in threads}
    for group in groups:
        assert {by_tid[tid].state for tid in group.tids} == {group.state}
    assert tids(groups_of(threads)) == tids(groups)


def test_groups_are_in_the_json_and_in_the_text_report() -> None:
    snapshot = scenarios.normal()
    groups = snapshot_codec.document(snapshot)["thread_groups"]
    assert sum(len(group["threads"]) for group in groups) == len(snapshot.threads)
    pool = next(group for group in groups if group["name"] == "pool-#")
    assert (pool["threads"], pool["state"], pool["idle"]) == ([4721, 4720, 4722], "idle", True)
    assert (pool["lock"], pool["kind"], pool["stack"]) == (5, "cond", 3)
    assert (pool["lock_name"], pool["longest_s"]) == ("pool_ready", 754.0)
    assert "pool-#" not in report.render(snapshot)
    page = report.render(snapshot, idle=True)
    at = page.index("THREADS WAITING FOR WORK NOW")
    assert page[at:].splitlines()[2:4] == [
        "  3 threads (pool-#: 4721, 4720, 4722) for up to 12 min 34 s: cond pool_ready",
        "      queue_take at /src/store/queue.c:19",
    ]


def test_the_text_report_lists_some_ids_of_a_large_group() -> None:
    lock = records.lock(1, "g_queue_lock", waiters=tuple(range(100, 184)), contended=1)
    made = records.snapshot(tuple(waiter(tid) for tid in range(100, 184)), (lock,))
    page = " ".join(report.render(made).split())
    assert "84 threads (worker-#: 183, 182, 181, 180, 179, 178, 177, 176 and 76 more)" in page
    assert page.count("cache_get at") == 1


def test_threads_of_short_waits_are_grouped_by_name_alone() -> None:
    threads = [waiter(1), waiter(2, lock=2), records.thread(3, "worker-3", ThreadState.RUNNING)]
    threads.append(records.thread(4, "io-4", ThreadState.RUNNING))
    (group, io) = groups_of(threads, restless=frozenset({1, 2, 3, 4}))
    assert (group.tids, io.tids) == ((2, 1, 3), (4,)), "blocked threads come first"
    assert (group.lock, group.locks, group.lock_name) == (0, (2, 1), "")
    assert group.state is ThreadState.WAITING


def test_threads_without_a_wait_are_grouped_by_the_name_of_their_pool() -> None:
    names = {1: "pool-1-thread-1", 2: "pool-1-thread-2", 3: "pool-2-thread-1", 4: "gc", 5: "7"}
    threads = [records.thread(tid, name, ThreadState.RUNNING) for tid, name in names.items()]
    groups = groups_of([*threads, records.thread(6, "12", ThreadState.RUNNING)])
    assert [(group.name, group.tids) for group in groups] == [
        ("pool-1-thread-#", (1, 2)), ("pool-2-thread-1", (3,)), ("gc", (4,)), ("#", (5, 6)),
    ]  # fmt: skip
