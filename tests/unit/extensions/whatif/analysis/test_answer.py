"""Answers, and the reasons for which there are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random

import pytest
from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.answer import Question, answer
from locktop.collector.extensions.whatif.analysis.evidence import Evidence, StateSample, ThreadTimes
from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    Prediction,
    RefusedChange,
    ThroughputUnit,
    UnitKind,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.extensions.whatif.simulator import Simulator
from locktop.collector.model import Kind, MarkRecord, WaitRecord

SPAN_US = 400_000
#: One change takes a third of the time that the likely ones take.
HALF = Change(ChangeKind.HOLD, 0.5, lock=65)
THREADS = 9


def crowd() -> Evidence:
    """Nine threads take turns: each holds the only lock for 100 us and wants it again at once."""
    records: list[WaitRecord] = []
    for number in range(SPAN_US // 100):
        tid = number % THREADS + 1
        wait_us = 700 if number >= THREADS else 0
        records.append(hold(tid, 65, 100 * number, 99, wait_us))
    times = ThreadTimes(name="worker", cpu_ns=0, queued_ns=0)
    rng = Random(1)
    samples = [
        StateSample(rng.randint(1, THREADS), rng.randint(0, SPAN_US * US), False)
        for _ in range(1200)
    ]
    return Evidence(
        from_ns=0,
        to_ns=SPAN_US * US,
        records=records,
        signals=(),
        samples=samples,
        times=dict.fromkeys(range(1, THREADS + 1), times),
        losses=(),
        cpus=2,
    )


def answered(evidence: Evidence, question: Question) -> WhatIf:
    return answer(evidence, question, Simulator)


def test_the_likely_changes_of_the_worst_lock_are_tried() -> None:
    found = answered(crowd(), Question(()))
    assert found.refusal is None
    assert found.replayed == pytest.approx(1.0, abs=0.05)
    assert found.rounds_per_s == pytest.approx(10_000, rel=0.02)
    assert [one.change.kind for one in found.predictions] == [
        ChangeKind.SPLIT,
        ChangeKind.HOLD,
        ChangeKind.THREADS,
    ]
    assert found.predictions[1].ratio == pytest.approx(2.0, rel=0.1)


def test_the_pressure_and_the_path_are_those_of_the_lock() -> None:
    [found] = answered(crowd(), Question([HALF])).pressure
    assert found.lock == 65
    assert found.wait_share == pytest.approx(0.7 * 10 / 9, rel=0.05)
    assert len(found.wait_shares) == 8
    assert found.path_share > 0.9


def test_a_wait_of_several_parts_counts_in_each() -> None:
    whole = crowd()
    longer = hold(THREADS + 1, 65, SPAN_US, 1, wait_us=SPAN_US / 2)
    still = hold(THREADS + 2, 65, SPAN_US + 1, 1, wait_us=SPAN_US / 4)
    plain = answered(whole, Question([HALF])).pressure[0].wait_shares
    changed = replace(whole, records=[*whole.records, longer], open_waits=[still])
    [found] = answered(changed, Question([HALF])).pressure
    more = [
        after * (THREADS + 2) - before * THREADS
        for after, before in zip(found.wait_shares, plain, strict=True)
    ]
    assert more == pytest.approx([0, 0, 0, 0, 1, 1, 2, 2], abs=0.05)


def with_losses(evidence: Evidence) -> Evidence:
    return replace(evidence, losses=[(0, evidence.to_ns * 3 // 4)])


def without_records(evidence: Evidence) -> Evidence:
    return replace(evidence, records=[])


def with_records_at_the_begin(evidence: Evidence) -> Evidence:
    first = [one for one in evidence.records if one.got_ns < evidence.to_ns // 8]
    return replace(evidence, records=first)


def with_few_rounds(evidence: Evidence) -> Evidence:
    return replace(evidence, records=evidence.records[::200])


def with_a_pause(evidence: Evidence) -> Evidence:
    later = [one for one in evidence.records if one.began_ns > evidence.to_ns // 2]
    return replace(evidence, records=[*evidence.records[::5][: len(later) // 5], *later])


def without_cpus(evidence: Evidence) -> Evidence:
    starved = ThreadTimes(name="worker", cpu_ns=10**8, queued_ns=2 * 10**8)
    return replace(evidence, times=dict.fromkeys(evidence.times, starved), cpus=16)


def with_unobserved_waits(evidence: Evidence) -> Evidence:
    return replace(evidence, unobserved_share=0.5)


def with_brief_threads(evidence: Evidence) -> Evidence:
    lasting = {tid: one for tid, one in evidence.times.items() if tid <= THREADS // 2}
    return replace(evidence, times=lasting)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        (with_losses, WhatIfRefusal.LOST),
        (without_records, WhatIfRefusal.FEW),
        (with_records_at_the_begin, WhatIfRefusal.FEW),
        (with_few_rounds, WhatIfRefusal.FEW),
        (with_a_pause, WhatIfRefusal.PHASES),
        (without_cpus, WhatIfRefusal.STARVED),
        (with_unobserved_waits, WhatIfRefusal.UNOBSERVED),
        (with_brief_threads, WhatIfRefusal.BRIEF),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    changed: Callable[[Evidence], Evidence], refusal: WhatIfRefusal
) -> None:
    found = answered(changed(crowd()), Question(()))
    assert (found.refusal, found.predictions) == (refusal, ())


def test_threads_that_wait_for_requests_keep_their_number() -> None:
    servers = replace(crowd(), request_shares=dict.fromkeys(range(1, THREADS + 1), 0.9))
    found = answered(servers, Question(()))
    assert ChangeKind.THREADS not in [one.change.kind for one in found.predictions]
    named = answered(servers, Question([Change(ChangeKind.THREADS, 2, group="worker")]))
    assert (named.refusal, named.predictions) == (WhatIfRefusal.REQUESTS, ())


def test_a_refused_change_leaves_the_others_as_they_are() -> None:
    servers = replace(crowd(), request_shares=dict.fromkeys(range(1, THREADS + 1), 0.9))
    few = Change(ChangeKind.THREADS, 2, group="worker")
    found = answered(servers, Question([few, HALF]))
    assert found.refusal is None
    assert found.predictions == answered(servers, Question([HALF])).predictions
    assert found.refused == (RefusedChange(few, WhatIfRefusal.REQUESTS),)
    alone = answered(servers, Question([few]))
    assert (alone.refusal, alone.refused) == (WhatIfRefusal.REQUESTS, found.refused)


def test_changes_are_not_tried_if_nothing_can_be_predicted() -> None:
    found = answered(with_few_rounds(crowd()), Question([HALF]))
    assert (found.refusal, found.refused) == (WhatIfRefusal.FEW, ())


def with_marks(evidence: Evidence, count: int, text: str) -> Evidence:
    """Add marks in holds at even distances, each of the holder."""
    holds = evidence.records[:: len(evidence.records) // count][:count]
    marks = [MarkRecord(one.tid, one.got_ns + 50 * US, text) for one in holds]
    return replace(evidence, marks=marks)


def test_frequent_marks_are_the_throughput() -> None:
    found = answered(with_marks(crowd(), 400, "commit"), Question([HALF]))
    assert found.unit == ThroughputUnit(kind=UnitKind.MARKS, mark="commit")
    assert found.refusal is None
    assert found.rounds_per_s == pytest.approx(1000, rel=0.02)
    [halved] = found.predictions
    assert halved.ratio == pytest.approx(2.0, rel=0.15)


def test_rare_marks_leave_the_rounds_as_they_are() -> None:
    plain = answered(crowd(), Question([HALF]))
    assert answered(with_marks(crowd(), 90, "reload begins"), Question([HALF])) == plain
    assert plain.unit.kind is UnitKind.ROUNDS


def test_a_wanted_lock_comes_before_marks() -> None:
    unit = ThroughputUnit(kind=UnitKind.LOCK, lock=65)
    found = answered(with_marks(crowd(), 400, "commit"), Question([HALF], unit))
    assert found == answered(crowd(), Question([HALF], unit))
    assert (found.unit, found.refusal) == (unit, None)


def test_wanted_marks_that_are_too_few_are_refused() -> None:
    unit = ThroughputUnit(kind=UnitKind.MARKS, mark="reload begins")
    found = answered(with_marks(crowd(), 90, "reload begins"), Question([HALF], unit))
    assert (found.unit, found.refusal) == (unit, WhatIfRefusal.FEW)


def test_a_refusal_because_of_phases_tells_when_the_program_changed() -> None:
    """The throughput is higher from the middle of the span on."""
    found = answered(with_a_pause(crowd()), Question(()))
    changed_s = datetime.fromisoformat(found.changed_at).timestamp()
    assert changed_s == pytest.approx(SPAN_US / 2 / 1e6, abs=0.01)
    assert answered(crowd(), Question(())).changed_at == ""


def with_futex_waits(evidence: Evidence, wait_us: float) -> Evidence:
    """Return the evidence with waits of two threads for a futex that is a lock."""
    waits = [
        replace(hold(tid, 66, SPAN_US / 2, 0, wait_us), kind=Kind.FUTEX, hold_ns=None)
        for tid in (1, 2)
    ]
    return replace(evidence, records=[*evidence.records, *waits], futex_locks=frozenset({66}))


def test_waits_for_futexes_that_are_locks_cannot_be_replayed() -> None:
    hot = with_futex_waits(crowd(), SPAN_US * THREADS * 0.08)
    found = answered(hot, Question([HALF]))
    assert (found.refusal, found.predictions) == (WhatIfRefusal.UNRECORDED, ())


def test_a_change_of_a_futex_is_refused_and_the_others_are_predicted() -> None:
    rare = with_futex_waits(crowd(), SPAN_US * 0.01)
    of_futex = Change(ChangeKind.HOLD, 0.5, lock=66)
    found = answered(rare, Question([HALF, of_futex]))
    assert [one.change for one in found.predictions] == [HALF]
    assert found.refused == (RefusedChange(of_futex, WhatIfRefusal.UNRECORDED),)


def test_the_replays_tell_how_far_they_are() -> None:
    steps: list[tuple[float, Prediction | None]] = []
    found = answer(crowd(), Question((HALF,)), Simulator, lambda *step: steps.append(step))
    parts = [part for part, _ in steps]
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0.0, pytest.approx(1.0))
    assert steps[-1][1] == found.predictions[0]
