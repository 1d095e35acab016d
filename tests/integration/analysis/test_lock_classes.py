"""A lock class of several locks: its sums, against those of the program itself."""

from __future__ import annotations

import json
from typing import Any

from support import tool
from support.targets import StartTarget

from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report

SUMMED = ("acquisitions", "contended", "trylock_failed", "wait_s", "hold_s", "hold_timed")


def check(found: dict[str, Any], truth: dict[str, Any], locks: list[dict[str, Any]]) -> None:
    """Compare a class with the program's own sums, and with the single locks."""
    assert found["instances"] == truth["instances"] == len(locks)
    assert found["acquisitions"] == truth["acquisitions"]
    assert found["contended"] == truth["contended"]
    assert truth["min_s"] <= found["wait_s"] <= truth["max_s"] * 1.001
    for name in SUMMED:
        assert abs(found[name] - sum(lock[name] for lock in locks)) < 1e-6, name
    assert found["wait_max_s"] == max(lock["wait_max_s"] for lock in locks)
    assert found["hold_max_s"] == max(lock["hold_max_s"] for lock in locks)
    assert found["locks"] == [lock["id"] for lock in locks][:64]


def scan_until_classified(pid: int) -> dict[str, Any]:
    """Return a snapshot in which the objects are one class, and the array is the other one."""

    def is_classified(document: dict[str, Any]) -> bool:
        return sorted(found["instances"] for found in document["lock_classes"]) == [8, 200]

    return tool.scan_until(pid, is_classified, "classes of 200 and of 8 locks")


def members(document: dict[str, Any], found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the locks that name the class."""
    return [lock for lock in document["locks"] if lock.get("class") == found["name"]]


def test_the_sums_of_a_class_are_those_of_the_program(start_target: StartTarget) -> None:
    target = start_target("array_and_heap_mutexes")
    truth = target.truth()
    document = scan_until_classified(target.pid)
    objects, shards = sorted(document["lock_classes"], key=lambda found: -found["instances"])
    check(objects, truth["objects"], members(document, objects))
    check(shards, truth["shards"], members(document, shards))
    assert objects["name"].startswith("mutex made in make_object (array_and_heap_mutexes.c:")
    assert shards["name"] == "array_and_heap_mutexes.c: shards[].mu"


def test_the_text_report_has_one_line_for_each_class(start_target: StartTarget) -> None:
    target = start_target("array_and_heap_mutexes")
    target.truth()
    page = report.render(
        snapshot_codec.parse(json.dumps(scan_until_classified(target.pid)).encode(), "fleet")
    )
    table = page.split("LOCKS, most wait first")[1].split("\n\n")[0]
    words = " ".join(table.split())  # longer figures wrap the name
    assert words.count(", 200 locks") == words.count("shards[].mu, 8 locks") == 1
    assert len(table.splitlines()) < 10, table


def test_destroyed_locks_stay_in_their_class(start_target: StartTarget) -> None:
    target = start_target("array_and_heap_mutexes")
    truth = target.truth()
    target.go_on()
    target.expect("freed")
    document = scan_until_classified(target.pid)
    objects = next(found for found in document["lock_classes"] if found["instances"] == 200)
    assert objects["destroyed"] == 100
    check(objects, truth["objects"], members(document, objects))


def waited_for(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the locks of a kind that threads wait for now."""
    return [lock for lock in document["locks"] if lock["kind"] == kind and lock["waiters"]]


def test_a_condition_that_threads_wait_for_is_not_destroyed(start_target: StartTarget) -> None:
    """The C++ library makes a condition again at its old address without a call."""
    target = start_target("conditions_made_again")
    target.expect("ready")
    document = tool.scan_until(
        target.pid, lambda found: found["hang"] is not None, "the hang of all threads"
    )
    conditions = waited_for(document, "cond")
    assert len(conditions) == 5
    assert not any(lock.get("destroyed") for lock in conditions)
    assert all(found["destroyed"] == 0 for found in document["lock_classes"])
    # The waits of the hang are not for work: the list of locks begins with them.
    for lock in conditions:
        assert lock["wait_s"] - lock["idle_s"] >= 0.9 * lock["wait_max_s"] > 0


def test_conditions_that_no_thread_waits_for_are_destroyed(start_target: StartTarget) -> None:
    target = start_target("conditions_made_again", "latch")
    target.expect("ready")
    document = tool.scan_until(
        target.pid, lambda found: found["hang"] is not None, "the hang of all threads"
    )
    (latch,) = waited_for(document, "futex")
    assert latch["name"].endswith("g_latch")
    assert len(latch["waiters"]) == 5
    assert not latch.get("destroyed")
    assert latch["wait_s"] - latch["idle_s"] > 0
    conditions = [lock for lock in document["locks"] if lock["kind"] == "cond"]
    assert len(conditions) == 5
    assert all(lock["destroyed"] for lock in conditions)
