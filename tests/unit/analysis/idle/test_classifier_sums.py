"""The classes of waits in threads, locks and sums, in one scan and from scan to scan."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.idle.classifier import Classifier, most_wait_first, state
from locktop.collector.analysis.idle.rules import Rules, parse
from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Lock,
    LockRates,
    Snapshot,
    Thread,
    ThreadState,
    TimeSplit,
    WaitStack,
)

QUEUE, TURN = 1, 2  # stacks: waits for work, waits for a turn
STACKS = {
    QUEUE: (Frame(1, "take", None, None, "app", 0),),
    TURN: (Frame(2, "turn", None, None, "app", 0),),
}
RULES = "contended turn kind=cond function=turn\nidle queue kind=mutex function=take"


def classifier(text: str = RULES) -> Classifier:
    return Classifier(Rules(parse(text, "x")))


def cond(wait_s: float, *stacks: WaitStack, **fields: Any) -> Lock:
    return records.lock(9, "c", Kind.COND, wait_s=wait_s, wait_stacks=stacks, **fields)


def scan(lock: Lock, *threads: Thread, **fields: Any) -> Snapshot:
    return replace(records.snapshot(threads, (lock,)), stacks=STACKS, **fields)


def idle_part(lock: Lock) -> tuple[bool, float]:
    found = classifier().classify(scan(lock)).locks[0]
    return found.idle, found.idle_s


def waiter(kind: Kind, stack: int, duration_s: float, **fields: Any) -> Thread:
    wait = records.wait(9, kind, duration_s, stack=stack)
    idle = wait.idle
    made = records.thread(
        5, "t", ThreadState.IDLE if idle else ThreadState.WAITING, waiting_for=wait
    )
    return replace(made, **fields)


# ---- parts of a lock's wait ----


@pytest.mark.parametrize(
    ("lock", "idle", "idle_s"),
    [
        (cond(10.0, WaitStack(QUEUE, 1, 10.0)), True, 10.0),
        (cond(10.0, WaitStack(TURN, 1, 10.0)), False, 0.0),
        (cond(10.0, WaitStack(TURN, 1, 4.0), WaitStack(QUEUE, 1, 6.0)), False, 6.0),
        # waits without a stack go by the kind
        (cond(10.0, WaitStack(TURN, 1, 4.0)), False, 6.0),
        (cond(10.0), True, 10.0),
        (cond(0.0), True, 0.0),
        # a part too small to be a wait of its own
        (cond(10.0, WaitStack(TURN, 1, 9.9)), False, 0.0),
        (cond(10.0, WaitStack(TURN, 1, 9.89)), False, pytest.approx(0.11)),
        # sums are read one after the other
        (cond(10.0, WaitStack(TURN, 1, 4.0), WaitStack(QUEUE, 1, 8.0)), False, 8.0),
        (cond(5.0, WaitStack(TURN, 1, 4.0), WaitStack(QUEUE, 1, 8.0)), False, 5.0),
    ],
)
def test_the_idle_part_of_a_lock_is_that_of_its_idle_stacks(
    lock: Lock, idle: bool, idle_s: float
) -> None:
    assert idle_part(lock) == (idle, idle_s)


def test_a_contended_kind_counts_waits_without_a_stack_as_contended() -> None:
    mutex = records.lock(9, "m", wait_s=10.0, wait_stacks=(WaitStack(QUEUE, 1, 4.0),))
    assert idle_part(mutex) == (False, 4.0)
    unused = records.lock(9, "m", wait_s=0.0)
    assert idle_part(unused) == (False, 0.0)


def test_a_lock_with_a_contended_wait_is_not_idle() -> None:
    lock = cond(10.0, WaitStack(QUEUE, 1, 10.0), waiters=(5,))
    found = classifier().classify(scan(lock, waiter(Kind.COND, TURN, 1.0)))
    assert not found.locks[0].idle
    assert classifier().classify(scan(lock, waiter(Kind.COND, QUEUE, 1.0))).locks[0].idle


def test_a_stack_keeps_its_object_where_its_class_is_the_same() -> None:
    stack = WaitStack(QUEUE, 1, 10.0, idle=True)
    lock = replace(cond(10.0, stack), idle=True, idle_s=10.0)
    assert classifier().classify(scan(lock)).locks[0] is lock


# ---- from scan to scan ----


def test_an_unchanged_lock_without_waiters_keeps_its_classes() -> None:
    one = classifier()
    lock = cond(10.0, WaitStack(TURN, 1, 10.0))
    first = one.classify(scan(lock)).locks[0]
    assert one.classify(scan(lock)).locks[0] is first
    waited = replace(lock, waiters=(5,))
    contended = one.classify(scan(waited, waiter(Kind.COND, TURN, 1.0))).locks[0]
    idle = one.classify(scan(waited, waiter(Kind.COND, QUEUE, 1.0))).locks[0]
    assert (contended.idle, idle.idle) == (False, False)


def test_the_rate_of_a_partly_idle_lock_is_that_of_its_contention() -> None:
    def rates(one: Classifier, turn: float, queue: float, interval_s: float) -> float:
        lock = cond(turn + queue, WaitStack(TURN, 1, turn), WaitStack(QUEUE, 1, queue),
                    rates=LockRates(wait=7.0))  # fmt: skip
        return one.classify(scan(lock, interval_s=interval_s)).locks[0].rates.wait

    one = classifier()
    assert rates(one, 1.0, 2.0, 0.5) == 7.0
    assert rates(one, 2.0, 4.0, 0.5) == 2.0
    assert rates(one, 1.5, 4.0, 0.5) == 0.0
    assert rates(one, 5.5, 4.0, 0.0) == 0.0
    assert rates(one, 6.0, 0.0, 0.5) == 7.0


# ---- threads ----


def test_a_thread_without_a_stack_goes_by_its_call_site() -> None:
    thread = waiter(Kind.COND, 0, 1.0)
    assert thread.waiting_for is not None
    thread = replace(thread, waiting_for=replace(thread.waiting_for, site=0x50))
    frame = Frame(0x50, "turn", None, None, "app", 0)
    lock = cond(1.0, waiters=(5,))
    known = classifier().classify(scan(lock, thread, sites={0x50: frame}))
    unknown = classifier().classify(scan(lock, thread, sites={0x51: frame}))
    assert (known.why[5], unknown.why[5]) == ("turn", "condition")


def test_the_current_wait_moves_from_one_share_to_the_other() -> None:
    thread = waiter(Kind.COND, TURN, 0.2, idle_share=0.9, wait_share=0.05)
    lock = cond(1.0, waiters=(5,))

    def shares(**fields: Any) -> tuple[float, float]:
        interval_s = fields.pop("interval_s", 0.5)
        made = scan(lock, replace(thread, **fields), interval_s=interval_s)
        found = classifier().classify(made).threads[0]
        assert found.waiting_for is not None
        assert not found.waiting_for.idle
        return pytest.approx(found.wait_share), pytest.approx(found.idle_share)  # type: ignore[return-value]

    assert shares() == (0.45, 0.5)
    assert shares(idle_share=0.3) == (0.35, 0.0)
    assert shares(alive=False) == (0.05, 0.9)
    assert shares(interval_s=0.0) == (0.05, 0.9)
    assert shares(interval_s=0.1) == (0.95, 0.0)


def test_the_split_of_the_time_moves_with_the_share() -> None:
    time = TimeSplit(idle=0.6, other=0.4)
    thread = waiter(Kind.COND, TURN, 0.2, idle_share=0.8, time=time)
    found = classifier().classify(scan(cond(1.0, waiters=(5,)), thread, interval_s=0.5)).threads[0]
    assert found.time is not None
    # Half of the idle share was this wait, so half of the idle time is.
    assert (found.time.contended, found.time.idle) == (pytest.approx(0.3), pytest.approx(0.3))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ThreadState.IDLE, ThreadState.WAITING),
        (ThreadState.WAITING, ThreadState.WAITING),
        (ThreadState.RUNNING, ThreadState.RUNNING),
        (ThreadState.OTHER, ThreadState.OTHER),
    ],
)
def test_only_a_sleeper_gets_the_state_of_its_wait(before: ThreadState, after: ThreadState) -> None:
    thread = waiter(Kind.COND, TURN, 1.0, state=before)
    found = classifier().classify(scan(cond(1.0, waiters=(5,)), thread))
    assert found.threads[0].state is after


# ---- deadlocks, keys, states ----


def deadlocked(certain: bool, reason: BlockReason) -> Snapshot:
    sem = records.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(5,))
    edge = DeadlockEdge(tid=5, waits_for=9, held_by=6, stack=0, site=0, reason=reason)
    found = Deadlock(certain=certain, since_s=1.0, cycle=(edge,))
    return scan(sem, waiter(Kind.SEM, 0, 5.0), deadlocks=(found,))


@pytest.mark.parametrize(
    ("certain", "reason", "is_lock"),
    [
        (True, BlockReason.GOT, True),
        (False, BlockReason.GOT, False),
        (True, BlockReason.SIGNALS, False),
    ],
)
def test_a_semaphore_in_a_certain_cycle_of_holders_is_a_lock(
    certain: bool, reason: BlockReason, is_lock: bool
) -> None:
    found = classifier().classify(deadlocked(certain, reason))
    assert found.locks[0].used_as_lock is is_lock
    assert found.why == {5: "deadlock"}
    assert found.threads[0].state is ThreadState.WAITING


def test_locks_are_sorted_by_what_counts() -> None:
    def lock(id_: int, **fields: Any) -> Lock:
        return replace(records.lock(id_, "l"), **fields)

    expected = [
        lock(9, wait_s=3.0),
        lock(8, wait_s=5.0, idle_s=4.0),
        lock(7, contended=2),
        lock(6, contended=1, acquisitions=5),
        lock(5, contended=1, acquisitions=4),
        lock(3, contended=1),
        lock(4, contended=1),
        lock(2, idle=True, wait_s=99.0, idle_s=99.0),
        lock(1, idle=True, wait_s=9.0, idle_s=9.0),
    ]
    found = expected[::-1]
    found.sort(key=most_wait_first)
    assert found == expected
    sampled = replace(expected[5], acquisitions=None)
    assert most_wait_first(sampled) == most_wait_first(expected[5])


def test_a_thread_has_a_state_by_its_kind_of_wait_and_its_letter() -> None:
    assert state(Kind.MUTEX, "S") is ThreadState.WAITING
    assert state(Kind.COND, "S") is ThreadState.IDLE
    assert state(None, "R") is ThreadState.RUNNING


def test_a_thread_name_decides_about_a_futex_call() -> None:
    one = classifier("idle mine kind=futex thread=pool*")
    frames = (Frame(1, "spin", None, None, "app", 0),)
    _, rule = one.classify_stack(frames, "pool-1")
    assert rule is not None
    assert rule.name == "mine"
    assert one.classify_stack(frames, "main") == ("", None)
