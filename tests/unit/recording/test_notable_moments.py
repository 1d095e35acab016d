"""Moments worth a jump: each is found once, from scans and from ring records."""

from __future__ import annotations

from msgspec.structs import replace
from support.shared_file import record
from unit.builders import records, scenarios
from unit.builders.waits import wait, waiting

from locktop.collector.model import Kind, Mark, Notable, NotableKind, Snapshot, WaitStack
from locktop.collector.native import lib
from locktop.collector.recording.notable_moments import NotableMoments
from locktop.collector.shm.slot_batch import SlotBatch

_SECOND = 1_000_000_000
_NOW = 1_790_000_000 * _SECOND
_HZ = 1e9


def _slots(
    *waits: tuple[int, int, float, float],
    kind: int = lib.LT_KIND_MUTEX,
    type_: int = lib.LT_RECORD_WAIT,
) -> SlotBatch:
    """Slots of waits: thread, lock, seconds ago that the wait began, seconds waited."""
    ticks = 10**13
    slots = b"".join(
        record(
            tid=tid, lock=lock, kind=kind, stack=3, start=ticks - round(ago_s * _HZ),
            wait=round(wait_s * _HZ), type=type_,
        )
        for tid, lock, ago_s, wait_s in waits
    )  # fmt: skip
    return SlotBatch(ticks=ticks, time_ns=_NOW, hz=_HZ, lost=0, records=slots)


def _calm(**more: object) -> Snapshot:
    return replace(waiting(), names_left=0, **more)


def _kinds(found: list[Notable]) -> list[NotableKind]:
    return [one.kind for one in found]


def test_a_deadlock_is_one_moment_at_the_scan_that_found_it() -> None:
    moments = NotableMoments(wait_s=100.0)
    found = moments.find(scenarios.deadlock(), _NOW)
    assert _kinds(found) == [NotableKind.DEADLOCK]
    assert found[0].time_ns == _NOW
    assert found[0].text.startswith("deadlock of 3 threads: ")
    assert moments.find(scenarios.deadlock(), _NOW + _SECOND) == []


def test_the_waits_of_a_deadlock_are_no_moments_beside_it() -> None:
    moments = NotableMoments()
    stuck = replace(scenarios.deadlock(), names_left=0)
    for second in range(3):
        found = moments.find(stuck, _NOW + second * _SECOND)
        cycle = {edge.tid for edge in stuck.deadlocks[0].cycle}
        assert not [one for one in found if one.kind is NotableKind.WAIT and one.tid in cycle]
        assert (NotableKind.DEADLOCK in _kinds(found)) == (second == 0)


def test_a_long_wait_is_one_moment_while_it_goes_on() -> None:
    moments = NotableMoments()
    assert moments.find(waiting(t1=wait(duration_s=0.9)), _NOW) == []
    (found,) = moments.find(waiting(t1=wait(duration_s=1.4)), _NOW + _SECOND)
    assert (found.kind, found.tid, found.lock) == (NotableKind.WAIT, 1, 1)
    assert found.text.startswith("t1 waits 1.40 s for ")
    assert moments.find(waiting(t1=wait(duration_s=2.4)), _NOW + 2 * _SECOND) == []


def test_waits_for_work_are_no_moments() -> None:
    moments = NotableMoments()
    assert moments.find(waiting(t1=wait(kind=Kind.COND)), _NOW) == []
    over = _slots((1, 77, 9.0, 5.0), kind=lib.LT_KIND_COND)
    assert moments.find(_calm(), _NOW, over) == []


def test_overlapping_long_waits_for_a_lock_are_one_moment_for_a_minute() -> None:
    moments = NotableMoments()
    counts = [
        len(moments.find(waiting(t1=wait(seq=second, duration_s=1.5)), _NOW + second * _SECOND))
        for second in range(70)
    ]
    assert counts[0] == 1
    assert sum(counts) == 2


def test_a_wait_that_a_thread_renews_at_once_is_one_moment() -> None:
    """A wait with a time limit of a second, in a loop, as a server waits for a table."""
    moments, timeout = NotableMoments(), lib.LT_RECORD_TIMEOUT
    counts = []
    for second in range(20):
        now_ns = _NOW + second * 1_010_000_000
        slots = replace(_slots((7, 1, 1.02, 1.001), type_=timeout), time_ns=now_ns)
        counts.append(len(moments.find(_calm(), now_ns, slots)))
    assert counts == [1] + [0] * 19
    at_once = _slots((7, 1, 9.0, 2.0), (7, 1, 6.99, 2.0), type_=timeout)
    assert len(NotableMoments().find(_calm(), _NOW, at_once)) == 1
    with_a_pause = _slots((7, 1, 9.0, 2.0), (7, 1, 6.0, 2.0), type_=timeout)
    assert len(NotableMoments().find(_calm(), _NOW, with_a_pause)) == 2


def test_waits_for_a_lock_that_is_got_are_moments_of_their_own() -> None:
    at_once = _slots((7, 1, 9.0, 2.0), (7, 1, 6.99, 2.0))
    assert len(NotableMoments().find(_calm(), _NOW, at_once)) == 2


def test_a_wait_that_ended_before_the_first_scan_is_a_moment_of_its_end() -> None:
    (found,) = NotableMoments().find(_calm(), _NOW, _slots((7, 1, 30.0, 2.5), (8, 1, 29.0, 0.9)))
    assert found.kind is NotableKind.WAIT
    assert found.time_ns == _NOW - round(27.5 * _SECOND)
    assert found.text.startswith("7 waited 2.50 s for ")


def test_a_wait_known_from_scans_is_no_second_moment_when_it_is_over() -> None:
    moments = NotableMoments()
    going_on = waiting(t1=wait(duration_s=1.4))
    assert len(moments.find(going_on, _NOW - _SECOND)) == 1
    assert moments.find(_calm(), _NOW, _slots((1, 1, 2.4, 1.6))) == []


def test_the_stack_of_a_wait_that_is_over_decides_whether_it_was_for_work() -> None:
    stacks = (WaitStack(3, 4, 9.0, idle=True), WaitStack(5, 1, 1.0))
    of_work = replace(records.lock(1, "queue"), idle=False, wait_stacks=stacks)
    assert NotableMoments().find(_calm(locks=(of_work,)), _NOW, _slots((7, 1, 30.0, 2.5))) == []
    other = replace(of_work, wait_stacks=stacks[1:])
    assert NotableMoments().find(_calm(locks=(other,)), _NOW, _slots((7, 1, 30.0, 2.5)))


def test_long_waits_are_reported_when_names_are_known_or_do_not_come() -> None:
    over = _slots((7, 1, 30.0, 2.5))
    unnamed = replace(waiting(t1=wait(lock=2, duration_s=4.0)), names_left=9)
    named = NotableMoments()
    assert named.find(unnamed, _NOW, over) == []
    assert len(named.find(replace(unnamed, names_left=0), _NOW + _SECOND)) == 2
    never = NotableMoments()
    counts = [len(never.find(unnamed, _NOW + at, over if at == 0 else None)) for at in range(30)]
    assert sum(counts) == 2


def test_each_mark_is_one_moment_with_its_own_time() -> None:
    moments = NotableMoments()
    first, second = Mark(5, 3.0, "deploy"), Mark(5, 0.5, "deploy")
    (one,) = moments.find(_calm(duration_s=100.0, marks=(first,)), _NOW)
    assert (one.kind, one.text, one.time_ns) == (NotableKind.MARK, "deploy", _NOW - 3 * _SECOND)
    later = _calm(duration_s=101.0, marks=(second, replace(first, ago_s=4.0)))
    (two,) = moments.find(later, _NOW + _SECOND)
    assert two.time_ns == _NOW + _SECOND // 2


def test_the_end_of_the_process_is_one_moment() -> None:
    moments = NotableMoments(wait_s=1e6)
    moments.find(scenarios.normal(), _NOW)
    found = moments.find(scenarios.ended(), _NOW + _SECOND)
    assert _kinds(found) == [NotableKind.ENDED]
    assert moments.find(scenarios.ended(), _NOW + 2 * _SECOND) == []


def test_every_lock_and_thread_of_a_scenario_gives_a_short_line() -> None:
    found = NotableMoments(wait_s=0.01).find(scenarios.hostile(), _NOW)
    assert all(one.text.isprintable() and len(one.text) <= 200 for one in found)
