"""A semaphore that a thread of the parent had at the fork: no thread of the child posts it."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool
from support.targets import StartTarget

#: Waits that have lasted for one second may also be part of a possible deadlock.
SETTLED_S = 1.2


def has_settled(document: dict[str, Any]) -> bool:
    """Whether a thread has waited for a semaphore for some time."""
    waits = [thread["waiting_for"] for thread in document["threads"]]
    return any(wait and wait["kind"] == "sem" and wait["since_s"] > SETTLED_S for wait in waits)


def has_certain(document: dict[str, Any]) -> bool:
    return any(found["certain"] for found in document["deadlocks"])


def test_a_lock_that_a_thread_of_the_parent_had_at_the_fork_is_a_certain_deadlock(
    start_target: StartTarget,
) -> None:
    target = start_target("child_wants_semaphore", "held")
    child = int(target.line())
    document = tool.scan_until(child, has_certain, "the deadlock of the child")
    (deadlock,) = document["deadlocks"]
    (edge,) = deadlock["cycle"]
    assert (edge["tid"], edge["held_by"], edge["how"]) == (child, 0, "at_fork")
    assert tool.functions(document, edge["stack"])[0] == "want"
    done = tool.run("check", "-p", child)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "got before the fork, and no thread of this process is left to post it" in said
    assert "A thread of the parent process had" in said
    assert tool.snapshot(target.pid)["deadlocks"] == []


def test_a_thread_of_the_child_that_the_first_thread_joins_is_in_the_deadlock(
    start_target: StartTarget,
) -> None:
    """Either the first thread had the semaphore at the fork, or a thread of the parent."""
    target = start_target("child_wants_semaphore", "joined")
    child = int(target.line())
    document = tool.scan_until(child, has_certain, "the deadlock of the child")
    (deadlock,) = document["deadlocks"]
    found = {edge["how"]: (edge["tid"], edge["held_by"]) for edge in deadlock["cycle"]}
    (second,) = {thread["tid"] for thread in document["threads"]} - {child}
    assert found == {"at_fork": (second, child), "lives": (child, second)}


@pytest.mark.parametrize(
    "way", ["seldom", "timed", "shared", "own", "free", "signal", "life", "anew"]
)
def test_other_waits_in_a_child_are_no_certain_deadlock(
    way: str, start_target: StartTarget
) -> None:
    target = start_target("child_wants_semaphore", way)
    child = int(target.line())
    document = tool.scan_until(child, has_settled, "the wait of the child")
    assert not has_certain(document)
    # No cycle is known in these children, yet nobody is left who could post.
    hangs = way in ("seldom", "signal", "life")
    assert tool.run("check", "--certain-only", "-p", child).returncode == hangs
    if way in ("shared", "own"):
        target.go_on()
        target.expect("got it")


def test_reading_the_parents_file_leaves_the_programs_descriptors_alone(
    start_target: StartTarget,
) -> None:
    truth = start_target("child_reads_parents_file", "watch").truth()
    assert truth["reads"] > 0
    assert truth["lowest"] > 32, "the numbers that the program gets next stay free"
    assert truth["left"] == 0


def test_a_program_that_closes_the_descriptor_loses_no_file_of_its_own(
    start_target: StartTarget,
) -> None:
    truth = start_target("child_reads_parents_file", "closed").truth()
    assert truth["reads"] > 0
    assert (truth["intact"], truth["left"]) == (8, 0)
