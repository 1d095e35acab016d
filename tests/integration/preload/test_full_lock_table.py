"""Uncontended locks took all the room: what is waited for has its place all the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target

LOCKS = 20_000
MIB = 1 << 20

#: Starts more_locks_than_room.c: where there is how little room.
StartCrowded = Callable[..., Target]


def limited(start_target: StartTarget) -> StartCrowded:
    """To the least that LOCKTOP_MEMORY may be."""

    def start(*arguments: str) -> Target:
        target = start_target(
            "more_locks_than_room", *arguments, environment={"LOCKTOP_MEMORY": "256K"}
        )
        target.expect("begun")
        target.go_on()
        return target

    return start


def room_left(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bavail * status.f_bsize


def filled_up(start_target: StartTarget, directory: Path) -> StartCrowded:
    """To what the library had when it began; then somebody else took all the rest."""

    def start(*arguments: str) -> Target:
        target = start_target(
            "more_locks_than_room", *arguments, environment={"LOCKTOP_DIR": str(directory)}
        )
        target.expect("begun")
        with open(directory / "filler", "wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))
        assert room_left(directory) == 0
        target.go_on()
        return target

    return start


@pytest.fixture(params=["limited", "filled up"])
def start_crowded(request: pytest.FixtureRequest, start_target: StartTarget) -> StartCrowded:
    if request.param == "limited":
        return limited(start_target)
    return filled_up(start_target, request.getfixturevalue("tmpfs")(MIB))


def assert_crowded(document: dict[str, Any], acquisitions: int) -> None:
    """There was no room for most locks, and no acquisition of theirs is lost."""
    others = tool.lock_named(document, "other locks")
    assert others["acquisitions"] > acquisitions / 2
    assert sum(thread["acquisitions"] for thread in document["threads"]) == acquisitions
    assert any("other locks" in note for note in document["notes"])


@pytest.mark.parametrize("who", ["both", "others"])
def test_a_late_lock_that_is_fought_for(who: str, start_crowded: StartCrowded) -> None:
    target = start_crowded(who, str(LOCKS), "fight")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert_crowded(document, truth["acquisitions"])
    late = tool.lock_named(document, "g_late")
    assert (late["holders"], late["waiters"]) == ([truth["alice"]], [truth["bob"]])
    assert late["contended"] == truth["contended"]
    # What alice took before it had a place stands with the others.
    assert truth["contended"] <= late["acquisitions"] <= truth["contended"] + 1
    assert sum(one["count"] for one in late["wait_stacks"]) == truth["contended"]
    wait = tool.thread_of(document, truth["bob"])["waiting_for"]
    assert (wait["lock"], wait["holders"]) == (late["id"], [truth["alice"]])
    assert tool.functions(document, wait["stack"])[0] == "takes_late"
    assert target.finish() == (0, [])


@pytest.mark.parametrize("who", ["both", "others"])
def test_two_late_locks_in_a_deadlock(who: str, start_crowded: StartCrowded) -> None:
    target = start_crowded(who, str(LOCKS), "cross")
    truth = target.truth()
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == 1, done
    document = tool.snapshot(target.pid)
    assert_crowded(document, truth["acquisitions"])
    (deadlock,) = document["deadlocks"]
    left, right = (tool.lock_named(document, name) for name in ("g_left", "g_right"))
    alice, bob = truth["alice"], truth["bob"]
    assert deadlock["certain"]
    assert {(one["tid"], one["waits_for"], one["held_by"]) for one in deadlock["cycle"]} == {
        (alice, right["id"], bob),
        (bob, left["id"], alice),
    }
    for one in deadlock["cycle"]:
        assert tool.functions(document, one["stack"])[0] == "takes_second"
    assert (left["holders"], right["holders"]) == ([alice], [bob])


def test_a_table_too_large_leaves_the_room_to_others(
    start_target: StartTarget, tmpfs: Callable[[int], Path]
) -> None:
    """One thread's table would have to become twice as large as what is left. That is left to the
    program, and to threads that need less."""
    directory = tmpfs(3 * MIB)
    own, main_knows = 1000, 8192  # a table is at most half full
    target = start_target(
        "more_locks_than_room",
        "others",
        str(LOCKS),
        "fight",
        str(own),
        environment={"LOCKTOP_DIR": str(directory)},
    )
    target.expect("begun")
    target.go_on()
    truth = target.truth()
    document = tool.snapshot(target.pid)
    others = tool.lock_named(document, "other locks")
    assert others["acquisitions"] == LOCKS - main_knows, "none of the others'"
    assert tool.lock_named(document, "g_late")["acquisitions"] == truth["contended"] + 1
    assert room_left(directory) > MIB / 4


def test_what_ended_threads_waited_for(start_crowded: StartCrowded) -> None:
    """Their figures stay with the lock."""
    target = start_crowded("others", str(LOCKS), "end")
    truth = target.truth()
    late = tool.lock_named(tool.snapshot(target.pid), "g_late")
    assert late["contended"] == truth["contended"] == 1
    assert (late["holders"], late["waiters"]) == ([], [])
