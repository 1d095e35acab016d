"""The takers of a semaphore's units, compared with what the program itself says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from support import tool
from support.eventually import until
from support.screen import Screen
from support.targets import StartTarget

from locktop.collector.analysis.semaphore_ownership import taken_units
from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach


def settled(pid: int, name: str, waiters: int) -> Snapshot:
    """Return a scan in which so many threads have waited for a second for the semaphore."""
    found: list[Snapshot] = []
    with closing(attach(pid)) as source:

        def have_waited() -> bool:
            seen = source.scan(resolve=True)
            ids = {lock.id for lock in seen.locks if lock.name == name}
            waits = [thread.waiting_for for thread in seen.threads]
            long = [one for one in waits if one is not None and one.duration_s > 1.0]
            found.append(seen)
            return sum(one.lock in ids for one in long) == waiters

        until(have_waited, f"{waiters} threads wait for {name}")
    return found[-1]


def test_threads_that_kept_a_unit_are_known_and_those_that_ended_too(
    start_target: StartTarget, need: Callable[..., Path]
) -> None:
    target = start_target("semaphore_units_kept", "leak")
    truth = target.truth()
    seen = settled(target.pid, "g_slots", 2)
    (taken,) = taken_units(seen).values()
    alive = {thread.tid for thread in seen.threads if thread.alive}
    takers = dict(taken.takers)
    assert taken.all == 3
    assert {tid: units for tid, units in takers.items() if tid in alive} == dict.fromkeys(
        truth["keepers"], 1
    )
    # The counts of a thread that ended stay with the thread, or are added to those of others.
    assert taken.ended + takers.get(truth["leaver"], 0) == 1
    text = tool.run("check", "-p", str(target.pid)).stdout
    words = " ".join(text.split())
    assert "sem g_slots: all 3 units taken, not posted: keeper-0, keeper-1, " in words
    with Screen(need("tmux"), "-p", target.pid, width=100, height=30) as screen:
        says = "all 3 units taken, not posted: keeper-0, keeper-1"
        screen.until(lambda text: f"g_slots: {says}" in text, "the banner")
        screen.press("4")
        screen.until(lambda text: f"now {says}" in text, "the blocking tree")
        screen.press("q")


def test_a_semaphore_that_others_post_has_no_takers(start_target: StartTarget) -> None:
    target = start_target("semaphore_units_kept", "buffer")
    target.truth()
    seen = settled(target.pid, "g_slots", 1)
    assert taken_units(seen) == {}
    assert "not posted" not in tool.run("check", "-p", str(target.pid)).stdout


def test_a_sampled_process_says_nothing_of_takers(start_unprepared: StartTarget) -> None:
    target = start_unprepared("semaphore_units_kept", "leak")
    target.truth()
    assert "not posted" not in tool.run("check", "-p", str(target.pid)).stdout
