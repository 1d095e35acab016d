"""Programs that are built from records: what threads compute, where they sleep, what they take."""

from __future__ import annotations

import pytest
from unit.builders.simulated import US, hold

from locktop.collector.analysis.whatif.evidence import Evidence, StateSample, ThreadTimes, parts
from locktop.collector.analysis.whatif.programs import ProgramBuilder, group_of
from locktop.collector.analysis.whatif.simulated_program import Do, LockType, Program
from locktop.collector.analysis.whatif.simulator import Simulator
from locktop.collector.model import Kind, SignalRecord, WaitRecord

SPAN_US = 100_000


def evidence(
    records: list[WaitRecord],
    signals: tuple[SignalRecord, ...] = (),
    samples: tuple[StateSample, ...] = (),
    cpu_us: float = SPAN_US,
) -> Evidence:
    tids = {one.tid for one in records}
    times = ThreadTimes(name="worker-1", cpu_ns=round(cpu_us * US), queued_ns=0)
    return Evidence(
        from_ns=0,
        to_ns=SPAN_US * US,
        records=sorted(records, key=lambda one: one.began_ns),
        signals=signals,
        samples=samples,
        times=dict.fromkeys(tids, times),
        losses=(),
        cpus=4,
    )


def rate(program: Program) -> float:
    outcome = Simulator(program).run(10**8, 10**9)
    return sum(outcome.rounds)


def amounts(program: Program, do: Do) -> list[float]:
    return [one.amount / US for one in program.threads[0].operations if one.do == do]


def test_a_thread_repeats_what_it_recorded() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    program = ProgramBuilder(evidence(records)).build()
    assert {*amounts(program, Do.COMPUTE)} == {300, 700}
    assert rate(program) == pytest.approx(1000, rel=0.01)
    assert program.rounds_per_s == {"worker": pytest.approx(1000, rel=0.01)}


def test_samples_tell_where_a_thread_sleeps() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    samples = tuple(
        StateSample(1, (1000 * n + at) * US, is_ready)
        for n in range(1, 90)
        for at, is_ready in ((150, False), (600, True))
    )
    program = ProgramBuilder(evidence(records, (), samples, cpu_us=0.7 * SPAN_US)).build()
    assert sum(amounts(program, Do.SLEEP)) / 99 == pytest.approx(300, rel=0.05)
    assert sum(amounts(program, Do.COMPUTE)) / 99 == pytest.approx(700, rel=0.05)


def test_the_wait_is_no_time_of_its_own() -> None:
    records = [hold(1, 65, 1000 * n + 400, 300, wait_us=400) for n in range(100)]
    program = ProgramBuilder(evidence(records)).build()
    assert rate(program) == pytest.approx(1e6 / 600, rel=0.01)


def test_nested_holds_keep_their_order() -> None:
    records = []
    for n in range(50):
        records += [hold(1, 65, 2000 * n, 1000), hold(1, 66, 2000 * n + 300, 200, site=2)]
    program = ProgramBuilder(evidence(records)).build()
    calls = [one.do for one in program.threads[0].operations if one.do in (Do.TAKE, Do.RELEASE)]
    assert calls == [Do.TAKE, Do.TAKE, Do.RELEASE, Do.RELEASE] * 50


def test_acquisitions_of_a_lock_can_be_the_rounds() -> None:
    records = []
    for n in range(50):
        records += [hold(1, 65, 2000 * n + 100 * k, 50) for k in range(3)]
        records.append(hold(1, 66, 2000 * n + 1000, 50, site=2))
    program = ProgramBuilder(evidence(records), unit=66).build()
    assert program.rounds_per_s == {"worker": 500}
    assert rate(program) == pytest.approx(500, rel=0.02)


def test_a_semaphore_is_a_queue_between_threads() -> None:
    waits = [
        WaitRecord(2, 70, Kind.SEM, (1000 * n + 10) * US, 980 * US, None, 0, 0, 5)
        for n in range(99)
    ]
    makers = [hold(1, 65, 1000 * n + 500, 100) for n in range(99)]
    posts = tuple(SignalRecord(1, 70, Kind.SEM, (1000 * n + 990) * US) for n in range(99))
    program = ProgramBuilder(evidence([*makers, *waits], posts)).build()
    queue = next(lock for lock in program.locks if lock.type is LockType.UNITS)
    assert queue.units == 0
    assert rate(program) == pytest.approx(2000, rel=0.02)


def test_parts_with_lost_records_are_left_out() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    whole = evidence(records)
    lossy = Evidence(
        **{name: getattr(whole, name) for name in whole.__struct_fields__ if name != "losses"},
        losses=((30_000 * US, 31_000 * US),),
    )
    found = parts(lossy, 4, 1000)
    assert [one.from_ns // US for one in found] == [0, 31_000, 50_000, 75_000]
    assert len(parts(whole, 4, 10)[0].records) <= 10


@pytest.mark.parametrize(
    ("name", "group"),
    [("worker-12", "worker"), ("rpc:3", "rpc"), ("main", "main"), ("17", "17"), ("w1", "w")],
)
def test_threads_of_a_group_share_a_name(name: str, group: str) -> None:
    assert group_of(name) == group
