"""Uncontended locks fill the shared memory, and a contended lock still gets its own record."""

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

#: Starts more_locks_than_room.c with too little shared memory.
StartCrowded = Callable[..., Target]


def limited(start_target: StartTarget) -> StartCrowded:
    """The shared memory has the smallest size that LOCKTOP_MEMORY accepts."""

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
    """Another file fills the file system after the library has reserved its first piece."""

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
    """Check that most locks have no record of their own, and that no acquisition is lost."""
    others = tool.lock_named(document, "other locks")
    assert others["acquisitions"] > acquisitions / 2
    assert sum(thread["acquisitions"] for thread in document["threads"]) == acquisitions
    assert any("other locks" in note for note in document["notes"])


@pytest.mark.parametrize("who", ["both", "others"])
def test_a_contended_lock_gets_a_record_though_the_table_is_full(
    who: str, start_crowded: StartCrowded
) -> None:
    target = start_crowded(who, str(LOCKS), "fight")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert_crowded(document, truth["acquisitions"])
    late = tool.lock_named(document, "g_late")
    assert (late["holders"], late["waiters"]) == ([truth["alice"]], [truth["bob"]])
    assert late["contended"] == truth["contended"]
    # Acquisitions before the lock had a record count for "other locks".
    assert truth["contended"] <= late["acquisitions"] <= truth["contended"] + 1
    assert sum(one["count"] for one in late["wait_stacks"]) == truth["contended"]
    wait = tool.thread_of(document, truth["bob"])["waiting_for"]
    assert (wait["lock"], wait["holders"]) == (late["id"], [truth["alice"]])
    assert tool.functions(document, wait["stack"])[0] == "takes_late"
    assert target.finish() == (0, [])


@pytest.mark.parametrize("who", ["both", "others"])
def test_a_deadlock_is_found_though_the_table_is_full(
    who: str, start_crowded: StartCrowded
) -> None:
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


def test_a_table_that_does_not_fit_leaves_the_room_to_others(
    start_target: StartTarget, tmpfs: Callable[[int], Path]
) -> None:
    """The main thread's table cannot double in the room that is left.

    The room stays free for the program, and for threads with smaller tables.
    """
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
    assert others["acquisitions"] == LOCKS - main_knows, "only acquisitions of the main thread"
    assert tool.lock_named(document, "g_late")["acquisitions"] == truth["contended"] + 1
    assert room_left(directory) > MIB / 4


def test_the_waits_of_ended_threads_stay_with_the_lock(start_crowded: StartCrowded) -> None:
    target = start_crowded("others", str(LOCKS), "end")
    truth = target.truth()
    late = tool.lock_named(tool.snapshot(target.pid), "g_late")
    assert late["contended"] == truth["contended"] == 1
    assert (late["holders"], late["waiters"]) == ([], [])
