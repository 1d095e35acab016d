"""A deadlock as a page: the threads, who is stuck behind them, what to change, what to do."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders import deadlock_reports
from unit.builders.deadlock_reports import ACCOUNTS, SLOTS, follower, member, report

from locktop.collector.model import Avoidance, BlockReason, DeadlockReport, Kind, LockName, Remedy
from locktop.collector.render.text import deadlock
from locktop.collector.render.words.wrap import wrapped

BARRIER = LockName(5, Kind.BARRIER, "g_rendezvous")
ABSENT = member(
    deadlock_reports.ALICE, BARRIER, 0, 0.0, reason=BlockReason.ABSENT, is_lower_bound=True
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("deadlock-ring", deadlock_reports.ring()),
        ("deadlock-itself", deadlock_reports.to_itself(certain=False, doubt="who knows")),
        (
            "deadlock-abandoned",
            deadlock_reports.abandoned(
                taken_at=deadlock_reports.site("credit", 21), is_lower_bound=True
            ),
        ),
        (
            "deadlock-at-fork",
            deadlock_reports.abandoned(SLOTS, 0, reason=BlockReason.AT_FORK),
        ),
        ("deadlock-nobody", report(ABSENT, avoidance=Avoidance(Remedy.NONE), ended=True)),
    ],
)
def test_the_page_of_a_deadlock(name: str, found: DeadlockReport) -> None:
    lines = [part for line in deadlock.lines(found) for part in wrapped(line, 100)]
    assert "\n".join(lines) + "\n" == page(name)


@pytest.mark.parametrize(
    ("count", "last"),
    [(20, "    thread 39 waits for mutex g_accounts for 2.00 s"), (21, "    and 1 more")],
)
def test_twenty_groups_of_threads_behind_a_deadlock_are_listed(count: int, last: str) -> None:
    names = [chr(ord("a") + n) * 3 for n in range(count)]
    behind = tuple(follower(20 + n, name, ACCOUNTS) for n, name in enumerate(names))
    found = list(deadlock.lines(replace(deadlock_reports.ring(), behind=behind)))
    end = found.index("  WHAT WOULD AVOID IT") - 1
    assert found[end - 1] == last
    assert "  STUCK BEHIND THEM" in found
    alone = deadlock.lines(deadlock_reports.to_itself(behind=behind[:1]))
    assert "  STUCK BEHIND IT" in alone


@pytest.mark.parametrize(("count", "last"), [(30, "29 debit at"), (31, "and 1 frame more")])
def test_thirty_frames_of_a_thread_are_listed(count: int, last: str) -> None:
    stack = tuple(deadlock_reports.site("debit", 30 + n) for n in range(count))
    alice = replace(deadlock_reports.to_itself().circle[0], stack=stack)
    found = list(deadlock.lines(replace(deadlock_reports.to_itself(), circle=(alice,))))
    assert found[found.index("  WHAT WOULD AVOID IT") - 2].strip().startswith(last)
