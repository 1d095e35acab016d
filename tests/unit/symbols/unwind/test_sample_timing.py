"""Samples whose timer was stopped when it was due are late, and periods change at random."""

from __future__ import annotations

import random

import pytest

from locktop.collector.symbols.unwind.sample_timing import EventTimer, UsualDelay

PERIOD_NS = 100_000
#: The delay that the kernel adds to a timer that was due when the thread left its CPU.
LATE_NS = 10_000
#: Samples until a usual delay is known.
LEARNT = 500


def fair(timer: EventTimer, delays: list[int]) -> list[bool]:
    """Return which samples are fair, by how much each one's period was too long."""
    ran = timer.ran_ns
    found = []
    for delay in delays:
        ran += PERIOD_NS + delay
        found.append(timer.is_fair(ran, ran))
    return found


@pytest.mark.parametrize("drift_ns", [0, 3_000, 20_000])
def test_a_sample_after_a_stopped_timer_is_late(drift_ns: int) -> None:
    """Each stop of a timer adds a little, so programs differ in the usual delay."""
    chance = random.Random(1)
    timer = EventTimer(PERIOD_NS, UsualDelay())
    late = [chance.random() < 0.2 for _ in range(LEARNT + 1000)]
    delays = [drift_ns + chance.randrange(-1500, 1500) + LATE_NS * one for one in late]
    assert fair(timer, delays)[LEARNT:] == [not one for one in late[LEARNT:]]


def test_lost_samples_do_not_make_the_next_one_late() -> None:
    timer = EventTimer(PERIOD_NS, UsualDelay())
    assert timer.is_fair(PERIOD_NS, PERIOD_NS)
    assert timer.is_fair(5 * PERIOD_NS, 5 * PERIOD_NS)


def test_the_period_changes_after_some_samples() -> None:
    timer = EventTimer(PERIOD_NS, UsualDelay())
    assert not timer.next_period()
    fair(timer, [0] * 20)
    periods = {timer.next_period() for _ in range(200)}
    assert PERIOD_NS / 2 <= min(periods) < 0.6 * PERIOD_NS
    assert 1.4 * PERIOD_NS < max(periods) <= 1.5 * PERIOD_NS
    timer.changed(min(periods), 10 * PERIOD_NS)
    assert not timer.next_period()


def test_a_sample_with_an_unknown_period_is_not_fair() -> None:
    """The timer of the first sample after a change began at an unknown moment."""
    timer = EventTimer(PERIOD_NS, UsualDelay())
    changed_ns = PERIOD_NS + 500
    assert timer.is_fair(PERIOD_NS, PERIOD_NS)
    timer.changed(PERIOD_NS // 2, changed_ns)
    # The kernel took this one before it knew of the change.
    assert not timer.is_fair(changed_ns, changed_ns)
    first_ns = changed_ns + PERIOD_NS // 2
    assert not timer.is_fair(first_ns, first_ns)
    second_ns = first_ns + PERIOD_NS // 2
    assert timer.is_fair(second_ns, second_ns)
