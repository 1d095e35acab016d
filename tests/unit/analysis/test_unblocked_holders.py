"""The plain reason why there is no deadlock, compared with the search in the graph."""

from __future__ import annotations

import random

import pytest
from unit.builders.records import lock

from locktop.collector.analysis import deadlocks
from locktop.collector.analysis.unblocked_holders import can_all_go_on
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import Held, Kind, Thread, ThreadState, Wait

KINDS = [Kind.MUTEX] * 12 + [Kind.RWLOCK, Kind.SPIN, Kind.COND, Kind.SEM, Kind.JOIN]


def thread(tid: int, waits_for: Wait | None = None, *holds: Held, alive: bool = True) -> Thread:
    return Thread(
        tid=tid, name="", alive=alive, state=ThreadState.OTHER, waiting_for=waits_for, holds=holds,
        wait_s={}, cpu_s=0.0, acquisitions=0, contended=0,
    )  # fmt: skip


def wait(lock_id: int, kind: Kind = Kind.MUTEX, saw: int = 0, timed: bool = False) -> Wait:
    return Wait(
        lock=lock_id, kind=kind, duration_s=5.0, holders=(), stack=5, site=0x10, seq=2,
        timed=timed, holder_seen=saw, awaits=1,
    )  # fmt: skip


def held(lock_id: int) -> Held:
    return Held(lock=lock_id, site=0x20, duration_s=None)


@pytest.mark.parametrize(
    ("threads", "found"),
    [
        ([thread(1, wait(7, saw=2)), thread(2, None, held(7))], True),
        ([thread(1, wait(7)), thread(2, wait(8), held(7)), thread(3, None, held(8))], False),
        ([thread(1, wait(7)), thread(2, wait(8, timed=True), held(7))], True),
        ([thread(1, wait(7, saw=9))], False),  # the owner has ended
        ([thread(1, wait(7)), thread(2, None, held(7), alive=False)], False),
        ([thread(1, wait(7, Kind.COND))], False),
        ([thread(1, wait(7, Kind.RWLOCK))], False),
        ([thread(1)], True),
        ([], True),
    ],
)
def test_no_thread_that_others_wait_for_may_wait_itself(threads: list[Thread], found: bool) -> None:
    assert can_all_go_on(threads) is found


def test_the_graph_never_has_a_deadlock_where_all_can_go_on() -> None:
    choice, plain, stuck = random.Random(18), 0, 0
    locks = {number: lock(number, f"lock {number}") for number in range(1, 5)}
    for _ in range(4000):
        threads = []
        for tid in range(1, choice.randint(2, 6)):
            kind = choice.choice(KINDS)
            waits = wait(choice.randint(1, 4), kind, choice.choice([0, 1, 2, 9]),
                         choice.random() < 0.1)  # fmt: skip
            holds = [held(choice.randint(1, 4)) for _ in range(choice.choice([0, 0, 0, 1, 2]))]
            waits_now = waits if choice.random() < 0.6 else None
            threads.append(thread(tid, waits_now, *holds, alive=choice.random() < 0.95))
        has_deadlock = bool(deadlocks.find(build_graph(threads, locks)))
        if can_all_go_on(threads):
            plain += 1
            assert not has_deadlock, threads
        stuck += has_deadlock
    assert plain > 500
    assert stuck > 200
