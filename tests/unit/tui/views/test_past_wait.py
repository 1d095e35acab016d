"""The details of a lock begin with the long wait that is over, and who had the lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Blame, Event, Kind, Lock, Snapshot, ThreadState
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.past_wait import past_wait
from locktop.tui.views.styled_line import line_text

LOCK, HOLDER, WAITER, RELOAD = 7, 21, 22, 0x401900
EVENT = Event(
    tid=WAITER, lock=LOCK, kind=Kind.MUTEX, ago_s=9.0, wait_s=2.0, hold_s=None, stack=0,
    holder=HOLDER, site=0, timed_out=False,
)  # fmt: skip


def quiet(*events: Event, **more: object) -> Snapshot:
    """A process with a lock that a thread waited 2 s for."""
    blame = (Blame(tid=23, site=0, wait_s=0.4), Blame(tid=HOLDER, site=RELOAD, wait_s=2.0))
    fields: dict[str, object] = {"wait_max_s": 2.0, "hold_max_s": 2.1, "blame": blame}
    lock: Lock = records.lock(LOCK, "g_cache", **(fields | more))
    threads = [records.thread(tid, f"t{tid}", ThreadState.RUNNING) for tid in (HOLDER, WAITER, 23)]
    reload = records.frame("cache_reload", "cache.c", 46, RELOAD)
    return records.snapshot(tuple(threads), (lock,), events=events, sites={RELOAD: reload})


def texts(snapshot: Snapshot) -> list[str]:
    index = SnapshotIndex(snapshot)
    return [line_text(line) for line in past_wait(index, index.locks[LOCK])]


def test_the_finding_names_waiter_and_holder_and_what_to_do() -> None:
    finding, advice = texts(quiet(EVENT))
    assert finding == (
        " Long wait, over: t22 waited 2.00s for it, until 7.00s ago, behind t21, which took it at"
        " cache_reload cache.c:46; the longest hold of all took 2.10s"
    )
    assert advice.startswith(" advice    Do less while it is held. ")


def test_without_a_record_the_waiter_has_no_name() -> None:
    finding, _ = texts(quiet())
    begin = " Long wait, over: a thread waited 2.00s for it; the waits were most of all behind t21,"
    assert finding.startswith(begin)


def test_the_holder_of_the_longest_wait_is_named_and_not_the_one_of_most_waits() -> None:
    finding, _ = texts(quiet(replace(EVENT, holder=23)))
    assert ", behind t23; the longest hold" in finding


@pytest.mark.parametrize(
    "near_miss",
    [
        lambda: quiet(EVENT, wait_max_s=0.9),
        lambda: quiet(EVENT, waiters=(WAITER,)),
        lambda: quiet(EVENT, kind=Kind.COND),
        lambda: quiet(EVENT, blame=()),
    ],
    ids=["a short wait", "a wait that goes on", "a wait for work", "holder unknown"],
)
def test_a_near_miss_is_no_finding(near_miss: Callable[[], Snapshot]) -> None:
    assert texts(near_miss()) == []
