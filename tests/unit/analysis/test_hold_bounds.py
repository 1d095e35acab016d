"""Lower bounds of holds that are not timed, from one scan to the next."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.hold_bounds import HoldBounds, HoldKey
from locktop.collector.model import Draft, Held, Kind, Lock, Snapshot, Thread, ThreadState

HOLDER, LOCK = 10, 1
HELD = Held(LOCK, 0x401100, None)


def holder(*holds: Held, **more: object) -> Thread:
    return replace(
        records.thread(HOLDER, "holder", ThreadState.OTHER), holds=holds or (HELD,), **more
    )


def lock(acquisitions: int | None = 5, **more: object) -> Lock:
    return replace(records.lock(LOCK, "g_lock"), acquisitions=acquisitions, **more)


def draft(at_s: float, thread: Thread | None = None, of: Lock | None = None) -> Draft:
    made = records.snapshot((thread or holder(),), (of or lock(),), duration_s=at_s)
    fields = {name: getattr(made, name) for name in Snapshot.__struct_fields__}
    return Draft(**fields)


class Scans:
    """Scans of one process."""

    def __init__(self) -> None:
        self._bounds = HoldBounds()

    def scan(
        self, made: Draft, asleep_s: float = 0.0, proved_s: Mapping[HoldKey, float] = {}
    ) -> Held:
        """Return the hold after a scan."""
        self._bounds.annotate(made, lambda tid: asleep_s, proved_s)
        (held,) = made.threads[0].holds
        return held

    def bound_s(self, made: Draft, asleep_s: float = 0.0) -> float | None:
        """Return the bound after a scan; None: there is none."""
        held = self.scan(made, asleep_s)
        assert held.is_lower_bound == (held.duration_s is not None)
        return held.duration_s


def test_a_first_scan_knows_no_bound_without_evidence() -> None:
    assert Scans().bound_s(draft(9.0)) is None


def test_a_hold_grows_while_no_thread_takes_the_lock() -> None:
    scans = Scans()
    assert scans.bound_s(draft(9.0)) is None
    assert scans.bound_s(draft(10.0)) == 1.0
    assert scans.bound_s(draft(12.5)) == 3.5


@pytest.mark.parametrize(
    "later", [lock(6), lock(generation=1), lock(None)], ids=["taken", "another", "uncounted"]
)
def test_a_hold_begins_anew_where_it_may_be_another(later: Lock) -> None:
    scans = Scans()
    scans.bound_s(draft(9.0))
    assert scans.bound_s(draft(10.0, of=later)) is None


def test_a_hold_from_another_call_is_another() -> None:
    scans = Scans()
    scans.bound_s(draft(9.0))
    assert scans.bound_s(draft(10.0, holder(replace(HELD, site=0x401200)))) is None


def test_a_thread_that_sleeps_has_its_locks_since_then() -> None:
    scans = Scans()
    assert scans.bound_s(draft(9.0, of=lock(None)), asleep_s=2.0) == 2.0
    assert scans.bound_s(draft(10.0, of=lock(None)), asleep_s=1.0) == 3.0  # the same hold
    assert scans.bound_s(draft(11.0, of=lock(None)), asleep_s=0.5) == 0.5


def test_the_sleep_in_a_wait_for_the_lock_itself_says_nothing() -> None:
    waits = records.wait(LOCK, Kind.MUTEX, 2.0)
    assert Scans().bound_s(draft(9.0, holder(waiting_for=waits)), asleep_s=2.0) is None


def test_the_longest_bound_counts() -> None:
    scans = Scans()
    held = scans.scan(draft(9.0), asleep_s=1.0, proved_s={(HOLDER, LOCK): 4.0})
    assert held.duration_s == 4.0
    assert scans.bound_s(draft(10.0), asleep_s=2.0) == 5.0


@pytest.mark.parametrize(
    "held", [replace(HELD, duration_s=0.5), replace(HELD, shared=True)], ids=["timed", "shared"]
)
def test_holds_that_are_timed_or_shared_stay(held: Held) -> None:
    assert Scans().scan(draft(9.0, holder(held)), asleep_s=2.0) == held


def test_threads_of_other_processes_stay() -> None:
    assert Scans().scan(draft(9.0, holder(pid=99)), asleep_s=2.0) == HELD
