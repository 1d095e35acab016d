"""The changes and the unit that options of ``locktop whatif`` name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.builders.simulated import hold

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes
from locktop.collector.extensions.whatif.model import Change, ChangeKind
from locktop.collector.extensions.whatif.question import (
    WantedChanges,
    changes_of,
    check_used,
    unit_of,
)
from locktop.collector.model import Kind

NORMAL = scenarios.normal()
[LOCK, *_] = [one for one in NORMAL.locks if one.kind is Kind.MUTEX]
NAMES = ("request-1", "request-2", "reply-1", "reader-1", "reader-2", "store")
SNAPSHOT = replace(
    NORMAL,
    threads=tuple(
        replace(NORMAL.threads[0], tid=tid, name=name) for tid, name in enumerate(NAMES, 1)
    ),
)


def group_of(name: str) -> str:
    [change] = changes_of(WantedChanges(threads=(f"{name}=4",)), SNAPSHOT)
    return change.group


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("request", "request"),
        ("request-1", "request"),
        ("request-#", "request"),
        ("request#", "request"),
        ("request-*", "request"),
        ("reque", "request"),
        ("ply", "reply"),
        ("ply-#", "reply"),
        ("store", "store"),
    ],
)
def test_a_group_has_the_name_that_the_screen_shows_or_a_part_of_it(name: str, group: str) -> None:
    assert group_of(name) == group


def test_a_part_of_several_names_is_no_group() -> None:
    with pytest.raises(LocktopError, match="4 groups of threads are called like 're': reader, rep"):
        group_of("re")
    with pytest.raises(LocktopError, match="there is no group of threads 'crew'; groups: reader"):
        group_of("crew")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (WantedChanges(hold=("",)), "the form is --hold LOCK=0.5x"),
        (WantedChanges(rw=("",)), "the form is --rw LOCK=0.9"),
        (WantedChanges(rw=("=0.9",)), "the form is --rw LOCK=0.9"),
        (WantedChanges(throughput=""), "the form is --throughput LOCK, mark:TEXT or rounds"),
    ],
)
def test_an_empty_name_is_not_the_only_lock(wanted: WantedChanges, said: str) -> None:
    snapshot = replace(SNAPSHOT, locks=(LOCK,))
    with pytest.raises(LocktopError, match=said):
        _ = changes_of(wanted, snapshot), unit_of(wanted, snapshot)


def evidence() -> Evidence:
    """Threads 1 and 2 took the lock 65, and thread 6 took nothing."""
    times = {
        tid: ThreadTimes(name=name, cpu_ns=0, queued_ns=0)
        for tid, name in enumerate(NAMES, 1)
        if tid in (1, 2, 6)
    }
    return Evidence(
        from_ns=0,
        to_ns=10**9,
        records=[hold(1, 65, 100, 99), hold(2, 65, 300, 99)],
        signals=(),
        samples=(),
        times=times,
        losses=(),
        cpus=2,
    )


OF_LOCK = Change(kind=ChangeKind.HOLD, amount=0.5, lock=LOCK.id)
OF_GROUP = Change(kind=ChangeKind.THREADS, amount=2, group="store")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (OF_LOCK, f"nobody took {LOCK.name} in the recorded time"),
        (OF_GROUP, "no thread of the group store used a lock in the recorded time"),
    ],
)
def test_a_change_that_meets_nothing_is_refused(change: Change, said: str) -> None:
    with pytest.raises(LocktopError, match=said):
        check_used([change], evidence(), SNAPSHOT)
    lost = replace(evidence(), records=[], losses=[(0, 10**9)])
    check_used([change], lost, SNAPSHOT)


def test_changes_that_meet_something_are_answered() -> None:
    used = [replace(OF_LOCK, lock=65), replace(OF_GROUP, group="request")]
    check_used([*used, Change(kind=ChangeKind.CPUS, amount=4)], evidence(), SNAPSHOT)


def test_a_thread_that_ended_without_a_name_may_be_of_any_group() -> None:
    ended = [*evidence().records, hold(99, 65, 500, 99)]
    check_used([OF_GROUP], replace(evidence(), records=ended), SNAPSHOT)
    with pytest.raises(LocktopError, match="nobody took"):
        check_used([OF_LOCK], replace(evidence(), records=ended), SNAPSHOT)
