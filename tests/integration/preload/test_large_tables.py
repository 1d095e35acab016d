"""Many locks and many threads: every count is right, nothing is folded together, and the memory is
what docs/overhead.md says. ``make sizes`` does the same with the largest sizes."""

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
    """So many in each run of the tests, and so many in `make sizes`."""
    return full if FULL else ordinary


def memory(target: Target) -> int:
    """Return what the target's file takes, bytes."""
    path = Path(f"/dev/shm/locktop-{target.pid}-{start_time(target.pid)}")
    return path.stat().st_blocks * 512


def acquisitions(document: dict[str, Any]) -> int:
    """Those of mutexes, from first to last, by thread."""
    return sum(thread["acquisitions"] for thread in document["threads"])


def assert_all_there(document: dict[str, Any], truth: dict[str, Any], locks: int) -> None:
    main = 1  # it holds g_gate
    assert acquisitions(document) == truth["acquisitions"] + main
    assert len(document["locks"]) + document.get("locks_left_out", 0) == locks + main
    assert not [note for note in document.get("notes", []) if "other locks" in note]


@pytest.mark.parametrize("threads", [1, 4])
def test_many_locks(start_target: StartTarget, threads: int) -> None:
    locks = size(20_000, 1_500_000)
    target = start_target("locks_and_threads_by_count", "locks", str(locks), str(threads))
    truth = target.truth()
    assert_all_there(tool.snapshot(target.pid), truth, locks)
    # 64 bytes where all threads find it, 128 to 256 in the tables of those who use it.
    assert memory(target) < 1000 * KB + 100 * KB * threads + (64 + 256) * locks


def test_each_thread_uses_every_lock(start_target: StartTarget) -> None:
    locks, threads = 1000, size(20, 200)
    target = start_target("locks_and_threads_by_count", "all", str(locks), str(threads))
    truth = target.truth()
    assert_all_there(tool.snapshot(target.pid), truth, locks)
    assert memory(target) < 1000 * KB + 150 * KB * threads


def test_many_threads_that_wait(start_target: StartTarget) -> None:
    locks, threads = 4, size(500, 12_000)
    target = start_target("locks_and_threads_by_count", "threads", str(locks), str(threads))
    truth = target.truth()
    document = tool.scan_until(
        target.pid,
        lambda seen: len(tool.lock_named(seen, "g_gate")["waiters"]) == threads,
        "all of them waiting",
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
def test_threads_and_locks_that_come_and_go(
    start_target: StartTarget, locks: int, threads: int
) -> None:
    """What ended threads counted is kept; what they needed is used by those that come after."""
    target = start_target("locks_and_threads_by_count", "lives", str(locks), str(threads))
    truth = target.truth()
    document = tool.snapshot(target.pid)
    listed = [lock for lock in document["locks"] if lock["kind"] == "mutex"]
    if locks < 5000:  # all of them are
        assert len(listed) == locks + 1  # and g_gate
        assert {lock["acquisitions"] for lock in listed if lock["name"] != "g_gate"} == {
            truth["acquisitions"] // locks
        }
    # Until their number has doubled, ended threads keep what they had.
    living = min(threads, 64 + 2) * (20 * KB + 256 * locks)
    assert memory(target) < 1000 * KB + living + (64 + 256 + 200) * locks


def test_what_finds_no_room_is_counted_together(start_target: StartTarget) -> None:
    """Two mebibytes are too few for so many; none of the acquisitions is lost, and it is said."""
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


def test_many_held_at_once(start_target: StartTarget) -> None:
    """Taken in one order and given back in the same; nothing stays behind."""
    locks = size(5_000, 100_000)
    target = start_target("locks_and_threads_by_count", "held", str(locks), "1")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert_all_there(document, truth, locks)
    gate = tool.lock_named(document, "g_gate")["id"]
    assert [thread["holds"] for thread in document["threads"]] == [[gate]]
