"""Locks of one name as one class: its sums against those that the program took itself."""

from __future__ import annotations

from typing import Any

from support import tool
from support.targets import StartTarget

SUMMED = ("acquisitions", "contended", "trylock_failed", "wait_s", "hold_s", "hold_timed")


def check(found: dict[str, Any], truth: dict[str, Any], locks: list[dict[str, Any]]) -> None:
    """Hold a class against the program's own sums, and against the single locks."""
    assert found["instances"] == truth["instances"] == len(locks)
    assert found["acquisitions"] == truth["acquisitions"]
    assert found["contended"] == truth["contended"]
    assert truth["least_s"] <= found["wait_s"] <= truth["most_s"] * 1.001
    for name in SUMMED:
        assert abs(found[name] - sum(lock[name] for lock in locks)) < 1e-6, name
    assert found["wait_max_s"] == max(lock["wait_max_s"] for lock in locks)
    assert found["hold_max_s"] == max(lock["hold_max_s"] for lock in locks)
    assert found["locks"] == [lock["id"] for lock in locks][:64]


def test_the_sums_of_a_class_are_those_of_the_program(start_target: StartTarget) -> None:
    target = start_target("fleet")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    by_size = {found["instances"]: found for found in document["lock_classes"]}
    assert set(by_size) == {200, 8}
    for found in by_size.values():
        locks = [lock for lock in document["locks"] if lock.get("class") == found["name"]]
        check(found, truth["objects" if found["instances"] == 200 else "shards"], locks)
    assert by_size[8]["name"] == "shards[].mu"
    assert "fleet.c:" in by_size[200]["name"]


def test_on_the_page_for_a_ticket_they_are_two_lines(start_target: StartTarget) -> None:
    target = start_target("fleet")
    target.truth()
    page = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout
    table = page.split("LOCKS, most wait first")[1].split("\n\n")[0]
    assert table.count(" 200 locks") == table.count("shards[].mu, 8 locks") == 1
    assert len(table.splitlines()) < 10, table


def test_destroyed_locks_stay_in_their_class(start_target: StartTarget) -> None:
    target = start_target("fleet")
    truth = target.truth()
    target.go_on()
    target.expect("freed")
    document = tool.snapshot(target.pid)
    (found,) = [found for found in document["lock_classes"] if found["instances"] == 200]
    assert found["destroyed"] == 100
    locks = [lock for lock in document["locks"] if lock.get("class") == found["name"]]
    check(found, truth["objects"], locks)
