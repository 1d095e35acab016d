"""Programs that are built from records: what threads compute, where they sleep, what they take."""

from __future__ import annotations

import pytest
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import (
    Evidence,
    StateSample,
    ThreadTimes,
    parts,
)
from locktop.collector.extensions.whatif.analysis.programs import ProgramBuilder, group_of
from locktop.collector.extensions.whatif.analysis.simulated_program import Do, LockType, Program
from locktop.collector.extensions.whatif.model import ThroughputUnit, UnitKind
from locktop.collector.extensions.whatif.simulator import Simulator
from locktop.collector.model import (
    Kind,
    MarkRecord,
    SignalRecord,
    WaitRecord,
)

SPAN_US = 100_000
MARKS = ThroughputUnit(kind=UnitKind.MARKS, mark="commit")


def evidence(
    records: list[WaitRecord],
    signals: tuple[SignalRecord, ...] = (),
    samples: tuple[StateSample, ...] = (),
    cpu_us: float = SPAN_US,
    marks: tuple[MarkRecord, ...] = (),
) -> Evidence:
    tids = {one.tid for one in records} | {one.tid for one in marks}
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
        marks=sorted(marks, key=lambda one: one.time_ns),
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
    unit = ThroughputUnit(kind=UnitKind.LOCK, lock=66)
    program = ProgramBuilder(evidence(records), unit).build()
    assert program.rounds_per_s == {"worker": 500}
    assert rate(program) == pytest.approx(500, rel=0.02)


def commit(tid: int, at_us: float) -> MarkRecord:
    return MarkRecord(tid, round(at_us * US), "commit")


def test_marks_are_the_rounds_where_the_thread_set_them() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    marks = tuple(commit(1, 1000 * n + 400) for n in range(0, 100, 4))
    program = ProgramBuilder(evidence(records, marks=marks), MARKS).build()
    assert program.rounds_per_s == {"worker": 250}
    assert rate(program) == pytest.approx(250, rel=0.01)
    operations = program.threads[0].operations
    at = [number for number, one in enumerate(operations) if one.do == Do.ROUND][1]
    steps = [(one.do, one.amount) for one in operations[at - 2 : at + 3]]
    assert steps == [
        (Do.RELEASE, 0),
        (Do.COMPUTE, 100 * US),
        (Do.ROUND, 0),
        (Do.COMPUTE, 600 * US),
        (Do.TAKE, 0),
    ]


def test_samples_on_both_sides_of_a_mark_are_kept_apart() -> None:
    """The thread sleeps for 500 us before each mark, and computes for 200 us behind it."""
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    marks = tuple(commit(1, 1000 * n + 800) for n in range(100))
    samples = tuple(
        StateSample(1, (1000 * n + at) * US, is_ready)
        for n in range(1, 90)
        for at, is_ready in ((150, True), (500, False), (900, True))
    )
    found = evidence(records, (), samples, cpu_us=0.5 * SPAN_US, marks=marks)
    program = ProgramBuilder(found, MARKS).build()
    operations = program.threads[0].operations
    before, behind = [], []
    for number, one in enumerate(operations):
        if one.do == Do.ROUND:
            before += operations[number - 1 : number]
            behind += operations[number + 1 : number + 2]
    assert {one.do for one in before} == {Do.SLEEP}
    assert {one.do for one in behind} == {Do.COMPUTE}
    assert sum(one.amount for one in before) / 100 == pytest.approx(500 * US, rel=0.05)
    assert sum(one.amount for one in behind) / 100 == pytest.approx(200 * US, rel=0.05)


def test_a_mark_within_a_hold_counts_within_it() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    marks = tuple(commit(1, 1000 * n + 100) for n in range(100))
    program = ProgramBuilder(evidence(records, marks=marks), MARKS).build()
    calls = [one.do for one in program.threads[0].operations if one.do != Do.COMPUTE]
    assert calls[:3] == [Do.TAKE, Do.ROUND, Do.RELEASE]
    assert rate(program) == pytest.approx(1000, rel=0.01)


def test_of_a_wait_nothing_is_own_time_though_a_mark_lies_in_it() -> None:
    records = [hold(1, 65, 1000 * n + 400, 300, wait_us=400) for n in range(100)]
    marks = tuple(commit(1, 1000 * n + 200) for n in range(100))
    program = ProgramBuilder(evidence(records, marks=marks), MARKS).build()
    assert rate(program) == pytest.approx(1e6 / 600, rel=0.01)


def test_threads_without_marks_have_no_rounds_and_still_hold_the_lock() -> None:
    records = [hold(1, 65, 1000 * n, 300) for n in range(100)]
    records += [hold(2, 65, 1000 * n + 500, 300) for n in range(100)]
    marks = tuple(commit(2, 1000 * n + 900) for n in range(100))
    program = ProgramBuilder(evidence(records, marks=marks), MARKS).build()
    rounds = [sum(one.do == Do.ROUND for one in thread.operations) for thread in program.threads]
    assert rounds == [0, 100]
    takes = [sum(one.do == Do.TAKE for one in thread.operations) for thread in program.threads]
    assert takes == [100, 100]
    assert rate(program) == pytest.approx(1000, rel=0.02)


def test_a_thread_of_marks_alone_takes_part() -> None:
    marks = tuple(commit(3, 500 * n) for n in range(200))
    program = ProgramBuilder(evidence([], marks=marks), MARKS).build()
    assert {*amounts(program, Do.COMPUTE)} == {500}
    assert rate(program) == pytest.approx(2000, rel=0.01)


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


def test_a_mark_lies_in_the_part_of_its_hold() -> None:
    """A hold lasts from 24,000 to 27,000 us, and the second part begins at 25,000 us."""
    records = [hold(1, 65, 24_000, 3000), hold(1, 65, 60_000, 100), hold(2, 66, 30_000, 100)]
    inside, later, of_other = commit(1, 26_000), commit(1, 27_500), commit(2, 26_000)
    first, second, *_ = parts(evidence(records, marks=(inside, later, of_other)), 4, 1000)
    assert first.marks == [inside]
    assert second.marks == [of_other, later]
    assert second.edges == {1: (27_000 * US, 50_000 * US), 2: (25_000 * US, 50_000 * US)}


def test_the_marks_of_a_hold_longer_than_a_part_lie_in_the_part_of_its_begin() -> None:
    records = [hold(1, 65, 24_000, 40_000)]
    marks = tuple(commit(1, at) for at in range(24_500, 66_000, 1000))
    found = parts(evidence(records, marks=marks), 4, 1000)
    assert [(one.from_ns // US, len(one.marks)) for one in found] == [(0, 40), (50_000, 2)]


def test_parts_with_many_marks_are_cut() -> None:
    marks = tuple(commit(1, 100 * n) for n in range(1000))
    found = parts(evidence([], marks=marks), 4, 10)
    assert [len(one.marks) for one in found] == [10] * 4
    assert {one.span_ns for one in found} == {1000 * US}


@pytest.mark.parametrize(
    ("name", "group"),
    [("worker-12", "worker"), ("rpc:3", "rpc"), ("main", "main"), ("17", "17"), ("w1", "w")],
)
def test_threads_of_a_group_share_a_name(name: str, group: str) -> None:
    assert group_of(name) == group
