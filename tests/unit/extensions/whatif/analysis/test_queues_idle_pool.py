"""A pool that mostly waits: its waits go on at the begin and at the end of each part."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes, parts
from locktop.collector.extensions.whatif.analysis.programs import ProgramBuilder
from locktop.collector.extensions.whatif.simulator import Simulator
from locktop.collector.model import Kind, SignalRecord, WaitRecord

POOL, PRODUCER, MUTEX, READY = 4, 9, 65, 66
#: The producer adds an item so often, and there is work of so many microseconds in each.
EACH_US, WORK_US, ITEMS = 400_000, 5_000, 25
_ROUNDING = 1


def _waited(tid: int, began_us: float, ended_us: float, site: int) -> WaitRecord:
    record = hold(tid, READY, ended_us, 0, wait_us=ended_us - began_us, site=site)
    return replace(record, kind=Kind.COND, hold_ns=None)


def evidence() -> Evidence:
    """Each thread of the pool takes an item in turn. Nobody computes."""
    records, signals = [], []
    began_us = {tid: -float(EACH_US) for tid in range(1, POOL + 1)}
    for number in range(ITEMS):
        at_us = 1000 + EACH_US * number
        tid = 1 + number % POOL
        records.append(hold(PRODUCER, MUTEX, at_us, 10, site=3))
        signals.append(SignalRecord(PRODUCER, READY, Kind.COND, (at_us + 5) * US))
        records.append(_waited(tid, began_us[tid], at_us + 7, site=2))
        # The wait for the mutex begins at the same moment; rounding says a little before.
        again = hold(tid, MUTEX, at_us + 11, 1, wait_us=4, site=2)
        records.append(
            replace(again, began_ns=again.began_ns - _ROUNDING, wait_ns=again.wait_ns + _ROUNDING)
        )
        back_us = at_us + 12 + WORK_US
        records.append(hold(tid, MUTEX, back_us, 1, site=1))
        began_us[tid] = back_us + 1
    to_ns = EACH_US * ITEMS * US
    still = [
        replace(
            _waited(tid, since_us, since_us + 1, site=2), wait_ns=to_ns + 1 - round(since_us * US)
        )
        for tid, since_us in began_us.items()
    ]
    idle = ThreadTimes(name="pool-1", cpu_ns=0, queued_ns=0)
    return Evidence(
        from_ns=0,
        to_ns=to_ns,
        records=sorted(records, key=lambda one: one.began_ns),
        open_waits=still,
        signals=signals,
        samples=(),
        times={PRODUCER: replace(idle, name="producer"), **dict.fromkeys(began_us, idle)},
        losses=(),
        cpus=2,
    )


@pytest.mark.parametrize("count", [2, 5, 8, 20])
def test_each_part_is_replayed_as_it_was(count: int) -> None:
    for part in parts(evidence(), count, 6000):
        program = ProgramBuilder(part).build()
        span_ns = 10 * part.span_ns
        outcome = Simulator(program).run(part.span_ns, span_ns)
        taken = {"pool": 0, "producer": 0}
        for thread, rounds in zip(program.threads, outcome.rounds, strict=True):
            taken[thread.group] += rounds
        recorded = sum(program.rounds_per_s.values()) * span_ns / 1e9
        assert sum(taken.values()) == pytest.approx(recorded, rel=0.3), part.from_ns


def test_a_wait_that_goes_on_at_the_end_is_no_time_of_the_thread() -> None:
    whole = evidence()
    last = parts(whole, 8, 6000)[-1]
    tid, wait = next((tid, wait) for tid, wait in last.last_waits.items() if tid != PRODUCER)
    assert last.edges[tid][1] == wait.began_ns
    unknown = parts(replace(whole, open_waits=()), 8, 6000)[-1]
    assert unknown.edges[tid][1] == whole.to_ns


def test_a_thread_that_waits_at_the_end_does_not_work_meanwhile() -> None:
    worked = [hold(1, MUTEX, 1000 * number, 500) for number in range(3)]
    waits = replace(_waited(1, 3000, 90_000, site=2), wait_ns=200_000 * US)
    whole = replace(
        evidence(),
        to_ns=100_000 * US,
        records=worked,
        signals=(),
        open_waits=[waits],
        times={1: ThreadTimes(name="pool-1", cpu_ns=0, queued_ns=0)},
    )
    [part] = parts(whole, 1, 6000)
    outcome = Simulator(ProgramBuilder(part).build()).run(part.span_ns, 10 * part.span_ns)
    assert sum(outcome.rounds) == pytest.approx(30, abs=3)
