"""Switches from each level to each other while locks are held, waited for and destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.linux.target import find_process
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.shm import control
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.levels import NAMES as LEVELS

#: Also each level without a change, except dormant, at which the library records nothing.
SWITCHES = [pair for pair in product(LEVELS, LEVELS) if pair != ("dormant", "dormant")]
#: After one second a wait may also be part of a possible deadlock.
SETTLED_S = 1.2
LOCKS = ("g_met", "g_again", "g_given", "g_kept", "g_gone")


def is_lower_bound(level: str, other: str) -> bool:
    return LEVELS.index(level) >= LEVELS.index(other)


def set_level(target: Target, level: str) -> None:
    """Set the level as ``locktop ctl`` does: without a claim, which would wake the library."""
    memory = discover.open_memory(find_process(target.pid))
    try:
        control.set_level(memory, level)
    finally:
        memory.close()


@contextmanager
def switched(target: Target, before: str, after: str) -> Iterator[Source]:
    """Set the level; the block gets a source of the target."""
    early = attach(target.pid) if before != "dormant" else None
    set_level(target, after)
    source = early or attach(target.pid)
    try:
        yield source
    finally:
        source.close()


def seen(source: Source) -> dict[str, Any]:
    return document(source.scan(resolve=True))


def holders(whole: dict[str, Any]) -> dict[str, list[int]]:
    """Return the holders of each held lock, except locks whose holder may be wrong."""
    return {
        lock["name"]: lock["holders"]
        for lock in whole["locks"]
        if lock["holders"] and lock["name"] in LOCKS and not lock["foreign_releases"]
    }


def records(whole: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the event records of a lock, the oldest first."""
    ids = [lock["id"] for lock in whole["locks"] if lock["name"] == name]
    found = [event for event in whole["events"] if event["lock"] in ids]
    return sorted(found, key=lambda event: -float(event["ago_s"]))


def kinds(events: list[dict[str, Any]]) -> list[tuple[int, bool]]:
    return [(event["tid"], event["wait_s"] > 0) for event in events]


@pytest.mark.parametrize(("before", "after"), SWITCHES)
def test_holds_and_waits_across_a_switch_are_right_or_unknown(
    start_target: StartTarget, before: str, after: str
) -> None:
    target = start_target("locks_across_level_switch", level=before)
    target.expect("taken")
    with switched(target, before, after) as source:
        whole = seen(source)
        known = "dormant" not in (before, after)
        main = target.pid
        held = holders(whole)
        assert set(map(tuple, held.values())) <= {(main,)}
        # A waiter has noted the holder of its lock. The collector uses the note for a moment.
        assert held.keys() == set(LOCKS) if known else held.keys() <= {"g_met"}
        check_met_while_held(whole, main, after)
        target.go_on()
        truth = target.truth()
        assert truth["failures"] == 0
        whole = seen(source)
        kept = {"g_again": [main], "g_kept": [main]} if known else {}
        gone = {"g_gone": [truth["gone_holder"]]} if after != "dormant" else {}
        assert holders(whole) == kept | gone
        assert not any(lock["waiters"] for lock in whole["locks"] if lock["name"] in LOCKS)
        check_met(whole, truth, before, after)
        target.go_on()
        target.expect("given")
        check_free(seen(source))
        check_round(target, source, after)


def check_met_while_held(whole: dict[str, Any], main: int, after: str) -> None:
    """Check that a wait is shown: the memory shows one that the library did not see begin."""
    waits = [thread for thread in whole["threads"] if thread["waiting_for"]]
    waits = [thread for thread in waits if thread["waiting_for"]["kind"] == "mutex"]
    assert [thread["tid"] != main for thread in waits] == [True]
    if after != "dormant":
        assert waits[0]["waiting_for"]["holders"] == [main]


def check_met(whole: dict[str, Any], truth: dict[str, Any], before: str, after: str) -> None:
    """Check the lock that was held and waited for when the level changed."""
    found = records(whole, "g_met")
    wait, hold = (truth["helper"], True), (truth["main"], False)
    if before == "dormant":
        assert found == []  # the library did not see the start of the wait
        return
    lock = tool.lock_named(whole, "g_met")
    assert (lock["acquisitions"], lock["contended"]) == (2, 1)
    assert 0.99 * truth["slept_s"] <= lock["wait_s"] <= 1.01 * truth["waited_s"]
    if after == "dormant":
        assert found == []  # the library did not see the release
        return
    if is_lower_bound(before, "blocks") and is_lower_bound(after, "contended"):
        assert kinds(found) == [hold, wait]
        assert 0.99 * truth["held_s"] <= found[0]["hold_s"] <= 1.01 * truth["held_max_s"]
    else:
        assert kinds(found) == ([wait] if is_lower_bound(after, "contended") else [])
    has_stacks = is_lower_bound(before, "contended")
    assert all(bool(event["stack"]) == has_stacks for event in found if event["wait_s"])


def check_free(whole: dict[str, Any]) -> None:
    """Check that there is no holder, no waiter and no deadlock."""
    assert holders(whole) == {}
    assert not any(lock["waiters"] for lock in whole["locks"] if lock["name"] in LOCKS)
    assert whole["deadlocks"] == []


def check_round(target: Target, source: Source, level: str) -> None:
    """Let the target do one more round at the new level, and check the figures of the round."""
    before = seen(source)
    target.go_on()
    target.expect("taken")
    target.go_on()
    truth = target.truth()
    target.go_on()
    target.expect("given")
    whole = seen(source)
    check_free(whole)
    added = {name: acquired(whole, name) - acquired(before, name) for name in LOCKS}
    counted = {"g_met": 2, "g_again": 2, "g_given": 1, "g_kept": 1}
    if level == "dormant":
        assert set(added.values()) == {0}
    else:
        assert {name: added[name] for name in counted} == counted
    wait, hold = (truth["helper"], True), (truth["main"], False)
    met = {"contended": [wait], "blocks": [hold, wait], "all": [hold, wait]}.get(level, [])
    assert kinds(new(whole, before, "g_met")) == met
    assert kinds(new(whole, before, "g_again")) == ([hold] if level == "all" else [])


def acquired(whole: dict[str, Any], name: str) -> int:
    return sum(int(lock["acquisitions"]) for lock in whole["locks"] if lock["name"] == name)


def new(whole: dict[str, Any], before: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return records(whole, name)[len(records(before, name)) :]


def test_no_deadlock_is_certain_if_a_semaphore_moved_while_the_library_was_dormant(
    start_target: StartTarget,
) -> None:
    """A dormant library counts neither the post of one thread nor the wait of another thread.

    So the first thread still looks like the holder, in a cycle with a thread that waits for it.
    """
    target = start_target(
        "scripted_threads",
        "stay",
        "get e, post e, get e, ask p, post e, meet 1, meet 2, ask q, meet 3, after 3, lock a",
        "meet 1, get e, meet 2, stay",
        "meet 3, lock a, get e",
    )
    first, _, waiter = target.truth()["tids"][1:]
    target.expect("p")
    set_level(target, "dormant")
    target.go_on()
    target.expect("q")
    set_level(target, "contended")
    target.go_on()
    source = attach(target.pid)
    try:
        longest = 0.0
        while longest < SETTLED_S:
            snapshot = source.scan()
            waits = {thread.tid: thread.waiting_for for thread in snapshot.threads}
            longest = min(
                wait.duration_s if (wait := waits[tid]) else 0.0 for tid in (first, waiter)
            )
        assert not any(found.certain for found in snapshot.deadlocks)
    finally:
        source.close()
