"""With many locks and threads every count is right, and every lock has its own record.

The shared memory is as large as docs/overhead.md says. ``make sizes`` uses the largest sizes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target, start_time

FULL = os.environ.get("LOCKTOP_SIZES") == "full"
KB = 1000


def size(ordinary: int, full: int) -> int:
    """Return ``ordinary``, or ``full`` in `make sizes`."""
    return full if FULL else ordinary


def memory(target: Target) -> int:
    """Return the size of the target's file on its file system, bytes."""
    path = Path(f"/dev/shm/locktop-{target.pid}-{start_time(target.pid)}")
    return path.stat().st_blocks * 512


def acquisitions(document: dict[str, Any]) -> int:
    """Return the acquisitions of all threads, ended ones included."""
    return sum(thread["acquisitions"] for thread in document["threads"])


def assert_all_there(document: dict[str, Any], truth: dict[str, Any], locks: int) -> None:
    main = 1  # the main thread holds g_gate
    assert acquisitions(document) == truth["acquisitions"] + main
    assert len(document["locks"]) + document.get("locks_left_out", 0) == locks + main
    assert not [note for note in document.get("notes", []) if "other locks" in note]


@pytest.mark.parametrize("threads", [1, 4])
def test_each_of_many_locks_has_its_own_record(start_target: StartTarget, threads: int) -> None:
    locks = size(20_000, 1_500_000)
    target = start_target("locks_and_threads_by_count", "locks", str(locks), str(threads))
    truth = target.truth()
    assert_all_there(tool.snapshot(target.pid), truth, locks)
    # A lock takes 64 bytes in the common table. Each of its users has 128 to 256 bytes more.
    assert memory(target) < 1000 * KB + 100 * KB * threads + (64 + 256) * locks


def test_each_thread_may_use_every_lock(start_target: StartTarget) -> None:
    locks, threads = 1000, size(20, 200)
    target = start_target("locks_and_threads_by_count", "all", str(locks), str(threads))
    truth = target.truth()
    assert_all_there(tool.snapshot(target.pid), truth, locks)
    assert memory(target) < 1000 * KB + 150 * KB * threads


def test_each_of_many_waiting_threads_is_in_the_snapshot(start_target: StartTarget) -> None:
    locks, threads = 4, size(500, 12_000)
    target = start_target("locks_and_threads_by_count", "threads", str(locks), str(threads))
    truth = target.truth()
    document = tool.scan_until(
        target.pid,
        lambda seen: len(tool.lock_named(seen, "g_gate")["waiters"]) == threads,
        "the waits of all threads",
    )
    assert_all_there(document, truth, locks * threads)
    gate = tool.lock_named(document, "g_gate")
    assert gate["holders"] == [target.pid]
    assert {one["waiting_for"]["lock"] for one in document["threads"] if one["waiting_for"]} == {
        gate["id"]
    }
    assert memory(target) < 1000 * KB + 100 * KB * threads
    assert tool.run("check", "-p", target.pid).returncode == 0


@pytest.mark.parametrize(
    ("locks", "threads"), [(200, size(300, 5000)), (size(20_000, 200_000), size(8, 40))]
)
def test_later_threads_use_the_memory_of_ended_ones_and_keep_their_counts(
    start_target: StartTarget, locks: int, threads: int
) -> None:
    target = start_target("locks_and_threads_by_count", "lives", str(locks), str(threads))
    truth = target.truth()
    document = tool.snapshot(target.pid)
    listed = [lock for lock in document["locks"] if lock["kind"] == "mutex"]
    if locks < 5000:  # so few that the list leaves out none
        assert len(listed) == locks + 1  # and g_gate
        assert {lock["acquisitions"] for lock in listed if lock["name"] != "g_gate"} == {
            truth["acquisitions"] // locks
        }
    # Ended threads keep their tables until their number has doubled.
    living = min(threads, 64 + 2) * (20 * KB + 256 * locks)
    assert memory(target) < 1000 * KB + living + (64 + 256 + 200) * locks


def test_locks_without_room_count_together_and_a_note_says_so(start_target: StartTarget) -> None:
    """Two mebibytes are too small for these locks. No acquisition is lost."""
    locks = 20_000
    target = start_target(
        "locks_and_threads_by_count", "locks", str(locks), "2", environment={"LOCKTOP_MEMORY": "2M"}
    )
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert acquisitions(document) == truth["acquisitions"] + 1
    by_lock = sum(lock["acquisitions"] for lock in document["locks"] if lock["kind"] == "mutex")
    others = [lock for lock in document["locks"] if lock["name"] == "other locks"]
    assert len(others) == 1
    assert others[0]["acquisitions"] > 0
    if not document.get("locks_left_out", 0):
        assert by_lock == truth["acquisitions"] + 1
    assert any("other locks" in note for note in document["notes"])
    assert memory(target) <= 2 << 20
    target.go_on()
    assert target.finish() == (0, [])


def test_a_thread_may_hold_many_locks_at_once(start_target: StartTarget) -> None:
    """The thread releases its locks in the order in which it took them, and then holds none."""
    locks = size(5_000, 100_000)
    target = start_target("locks_and_threads_by_count", "held", str(locks), "1")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert_all_there(document, truth, locks)
    gate = tool.lock_named(document, "g_gate")["id"]
    assert [thread["holds"] for thread in document["threads"]] == [[gate]]
