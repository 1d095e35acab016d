"""Idle and contended waits: their effect on threads, locks and sums."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules, parse
from locktop.collector.model import Frame, Kind, Lock, Snapshot, Thread, ThreadState, WaitStack
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.profiles import call_tree


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(Frame(0x10 + i, name, None, None, "app", i) for i, name in enumerate(functions))


def classified(snapshot: Snapshot, *own: str) -> Snapshot:
    return Classifier(Rules(parse("\n".join(own), "x"))).classify(snapshot)


def thread_of(snapshot: Snapshot, name: str) -> Thread:
    return next(thread for thread in snapshot.threads if thread.name == name)


def lock_of(snapshot: Snapshot, name: str) -> Lock:
    return next(lock for lock in snapshot.locks if lock.name == name)


def test_threads_and_locks_with_the_verdict_of_their_kind_stay_the_same_objects() -> None:
    before = scenarios.normal()
    after = classified(before)
    assert all(a is b for a, b in zip(before.threads, after.threads, strict=True))
    assert all(a is b for a, b in zip(before.locks, after.locks, strict=True))
    assert after.why == {
        4711: "join", 4712: "mutex", 4713: "mutex", 4715: "mutex",
        4720: "pool", 4721: "pool", 4722: "pool",
    }  # fmt: skip


def test_a_rule_makes_a_mutex_wait_idle() -> None:
    after = classified(scenarios.normal(), "idle serving kind=mutex function=serve_get")
    worker = thread_of(after, "worker-0")  # in stack 1, under serve_get
    assert worker.waiting_for is not None
    assert (worker.state, worker.waiting_for.idle) == (ThreadState.IDLE, True)
    assert after.why[worker.tid] == "serving"
    # The wait took 0.234 s of the last half second.
    assert worker.wait_share == pytest.approx(0.97 - 0.234 / 0.5)
    assert worker.idle_share == pytest.approx(0.234 / 0.5)
    other = thread_of(after, "worker-1")
    assert other.state is ThreadState.WAITING
    lock = lock_of(after, "g_cache_lock")
    assert [entry.idle for entry in lock.wait_stacks] == [True, False]
    assert not lock.idle
    assert lock.idle_s == 3720.5
    assert lock.counted_wait_s == pytest.approx(1467.6)


def test_a_lock_with_only_idle_waits_is_idle_and_sorted_last() -> None:
    before = scenarios.normal()
    after = classified(before, "idle all lock=g_table_lock", "idle cache lock=g_cache_lock")
    for name in ("g_table_lock", "g_cache_lock"):
        lock = lock_of(after, name)
        assert (lock.idle, lock.idle_s) == (True, lock.wait_s)
    assert [lock.idle for lock in after.locks] == [False, False, True, True, True, True]
    assert after.locks[0].name == "stats_mutex"
    again = classified(after)
    assert again.locks == before.locks
    assert [t.state for t in again.threads] == [t.state for t in before.threads]


def test_a_rule_makes_a_condition_variable_contended() -> None:
    normal = scenarios.normal()
    stacks = (WaitStack(3, 10, 10_801.0),)
    locks = tuple(
        replace(lock, wait_stacks=stacks) if lock.name == "pool_ready" else lock
        for lock in normal.locks
    )
    after = classified(replace(normal, locks=locks), "contended turn function=queue_take")
    lock = lock_of(after, "pool_ready")
    assert (lock.idle, lock.idle_s) == (False, 0.0)
    assert after.locks[0] is lock, "this lock has the most wait"
    assert thread_of(after, "pool-1").state is ThreadState.WAITING
    assert thread_of(after, "pool-1").wait_share == 1.0
    root = call_tree.tree(call_tree.branches(after, call_tree.WAIT))
    assert root.value == pytest.approx(3720.5 + 1467.6 + 310.4 + 0.0213 + 10_801.0)
    plain = call_tree.tree(call_tree.branches(classified(after), call_tree.WAIT))
    assert (plain.value, plain.idle) == pytest.approx((root.value - 10_801.0, 10_801.0 + 3720.0))


def test_a_rule_on_a_thread_does_not_apply_to_sums() -> None:
    after = classified(scenarios.normal(), "idle mine thread=worker-0")
    assert thread_of(after, "worker-0").state is ThreadState.IDLE
    assert lock_of(after, "g_cache_lock") is not None
    assert lock_of(after, "g_cache_lock").idle_s == 0.0


def test_no_rule_makes_a_deadlocked_thread_idle() -> None:
    after = classified(scenarios.deadlock(), "idle everything")
    for thread in after.threads:
        if thread.waiting_for is not None:
            stuck = thread.name.startswith("philosopher")
            assert thread.waiting_for.idle is not stuck
            assert after.why[thread.tid] == ("deadlock" if stuck else "everything")


def test_a_verdict_by_functions_holds_for_waits_without_known_functions() -> None:
    rules = (
        "contended takes kind=sem function=cache_get for-all\n"
        "idle rests kind=sem function=queue_take for-all\n"
        "contended alone kind=sem function=main"
    )
    normal = scenarios.normal()
    takes, rests, alone = (
        next(
            id_ for id_, frames in normal.stacks.items() if any(f.function == name for f in frames)
        )
        for name in ("cache_get", "queue_take", "main")
    )
    classifier = Classifier(Rules(parse(rules, "x")))

    def why(*stacks: int, generation: int = 0) -> list[str]:
        lock = records.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(1,), generation=generation)
        threads = tuple(
            records.thread(
                1 + n, f"t{n}", ThreadState.IDLE,
                waiting_for=replace(records.wait(9, Kind.SEM, 5.0), stack=stack),
            )
            for n, stack in enumerate(stacks)
        )  # fmt: skip
        seen = replace(records.snapshot(threads, (lock,)), stacks=normal.stacks)
        after = classifier.classify(seen)
        assert after.locks[0].used_as_lock is (after.why[1] != "semaphore")
        return [after.why[thread.tid] for thread in threads]

    assert why(0) == ["semaphore"]
    assert why(0, takes) == ["used-as-lock", "takes"]
    assert why(0, alone) == ["used-as-lock", "alone"]
    assert why(0, rests) == ["semaphore", "rests"], "another semaphore lies at the address by now"
    assert why(0, alone) == ["semaphore", "alone"], (
        "the rule lacks for-all, so it decides about its own wait alone"
    )
    assert why(0, takes) == ["used-as-lock", "takes"]
    assert why(0, generation=1) == ["semaphore"]


def test_a_thread_behind_a_certain_deadlock_is_not_idle() -> None:
    ring = scenarios.deadlock()
    (deadlock,) = ring.deadlocks
    behind = replace(ring, deadlocks=(replace(deadlock, stuck=(4711,)),))
    assert classified(behind).why[4711] == "deadlock"
    doubted = replace(behind, deadlocks=(replace(deadlock, stuck=(4711,), certain=False),))
    assert classified(doubted).why[4711] == "join"


def test_the_wait_of_a_deadlocked_thread_is_no_idle_time_of_its_lock() -> None:
    ring = scenarios.deadlock()
    stuck = {edge.tid: edge.waits_for for deadlock in ring.deadlocks for edge in deadlock.cycle}
    waits = {
        thread.waiting_for.lock: thread.waiting_for.duration_s
        for thread in ring.threads
        if thread.waiting_for is not None and thread.tid in stuck
    }
    assert waits
    for lock in classified(ring, "idle everything").locks:
        rest_s = max(0.0, lock.wait_s - waits.get(lock.id, 0.0))
        assert lock.idle_s == pytest.approx(rest_s)


def test_names_that_come_later_change_the_verdict() -> None:
    classifier = Classifier(Rules(parse("contended turn function=queue_take", "x")))
    normal = scenarios.normal()
    nameless = tuple(replace(frame, function="") for frame in normal.stacks[3])
    first = classifier.classify(replace(normal, stacks={**normal.stacks, 3: nameless}))
    assert thread_of(first, "pool-1").state is ThreadState.IDLE
    assert thread_of(classifier.classify(normal), "pool-1").state is ThreadState.WAITING


def test_the_idle_part_of_an_interval_is_separate() -> None:
    def scan(queue: float, turn: float) -> Snapshot:
        stacks = (WaitStack(3, 5, queue), WaitStack(1, 5, turn))
        made = records.lock(9, "c", Kind.COND, wait_s=queue + turn, wait_stacks=stacks)
        return records.snapshot((), (made,))

    classifier = Classifier(Rules(parse("contended turn function=cache_get", "x")))
    before, after = classifier.classify(scan(10.0, 1.0)), classifier.classify(scan(14.0, 2.5))
    assert after.locks[0].rates.wait == pytest.approx(1.5 / 0.5), "the rate counts contention alone"
    interval = snapshot_codec.document(after, before)["locks"][0]["interval"]
    assert (interval["wait_s"], interval["idle_s"]) == (5.5, 4.0)
