"""Whom a lock was waited for, against what the threads wrote down themselves."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from support import tool
from support.targets import StartTarget

#: What a thread writes down and what the library sees of it are some code apart, and a thread may
#: be put to sleep between the two; of milliseconds that is little.
CLOSE = 0.08

#: By tid and place.
Seconds = defaultdict[tuple[int, str], float]


class Turn(NamedTuple):
    """Of one thread: when it asked for the lock, got it and gave it back, seconds."""

    tid: int
    place: str
    shared: int
    asked: float
    taken: float
    given: float


def waited_for(turns: list[Turn]) -> Seconds:
    """Return by thread and place how long others waited for a lock that was held there."""
    found: Seconds = defaultdict(float)
    for waiter in turns:
        for holder in turns:
            if holder.tid != waiter.tid:
                both = min(waiter.taken, holder.given) - max(waiter.asked, holder.taken)
                found[holder.tid, holder.place] += max(0.0, both)
    return found


def waited_for_any(turns: list[Turn]) -> float:
    """Return how long threads waited for the lock while at least one other one held it."""
    found = 0.0
    for waiter in turns:
        at = waiter.asked
        for holder in sorted(turns, key=lambda turn: turn.taken):
            if holder.tid != waiter.tid:
                begin, end = max(at, holder.taken), min(waiter.taken, holder.given)
                found += max(0.0, end - begin)
                at = max(at, end)
    return found


def lock_of(document: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = max(
        (lock for lock in document["locks"] if lock["kind"] == kind),
        key=lambda lock: lock["wait_s"],
    )
    return found


def blamed(document: dict[str, Any], lock: dict[str, Any]) -> Seconds:
    found: Seconds = defaultdict(float)
    for one in lock["blame"]:
        frame = document["sites"].get(one["site"])
        found[one["tid"], frame["function"] if frame else ""] += one["wait_s"]
    return found


def book(truth: dict[str, Any]) -> list[Turn]:
    return [Turn(*turn) for turn in truth["turns"]]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mutex", "mutex"),
        ("recursive", "mutex"),
        ("robust", "mutex"),
        ("inherit", "mutex"),
        ("adaptive", "mutex"),
        ("write", "rwlock"),
        ("spin", "spin"),
        ("custom", "custom"),
        ("cond", "mutex"),
    ],
)
def test_each_holder_is_charged_with_what_others_waited(
    name: str, kind: str, start_target: StartTarget
) -> None:
    target = start_target("waits_and_holds_logged", name)
    turns = book(target.truth())
    document = tool.snapshot(target.pid)
    lock = lock_of(document, kind)
    assert sum(one["wait_s"] for one in lock["blame"]) == pytest.approx(lock["wait_s"], rel=1e-9)
    truth, seen = waited_for(turns), blamed(document, lock)
    assert sum(map(bool, truth.values())) >= 8, "four threads, two places"
    for holder in {*truth, *seen} - {(0, "")}:
        assert seen[holder] == pytest.approx(truth[holder], abs=CLOSE * lock["wait_s"]), holder


def test_a_reader_is_charged_for_no_more_than_its_own_holds(start_target: StartTarget) -> None:
    """Of readers that hold it at the same time the one that leaves first is charged."""
    target = start_target("waits_and_holds_logged", "read")
    turns = book(target.truth())
    document = tool.snapshot(target.pid)
    lock = lock_of(document, "rwlock")
    assert sum(one["wait_s"] for one in lock["blame"]) == pytest.approx(lock["wait_s"], rel=1e-9)
    truth, seen = waited_for(turns), blamed(document, lock)
    readers = {turn.tid for turn in turns if turn.shared}
    near = CLOSE * lock["wait_s"]
    for holder, wait_s in truth.items():
        assert seen[holder] <= wait_s + near, holder
        if holder[0] not in readers:
            assert seen[holder] >= wait_s - near, holder
    del seen[0, ""]
    assert sum(seen.values()) == pytest.approx(waited_for_any(turns), abs=near)
    assert sum(seen[holder] for holder in seen if holder[0] in readers) > 0


def test_what_ended_threads_held_is_charged_by_place(start_target: StartTarget) -> None:
    target = start_target("waits_and_holds_logged", "many")
    turns = book(target.truth())
    document = tool.snapshot(target.pid)
    lock = lock_of(document, "mutex")
    truth: dict[str, float] = defaultdict(float)
    for (_, place), wait_s in waited_for(turns).items():
        truth[place] += wait_s
    seen: dict[str, float] = defaultdict(float)
    for (_, place), wait_s in blamed(document, lock).items():
        seen[place] += wait_s
    for place in ("take_here", "take_there"):
        assert seen[place] == pytest.approx(truth[place], abs=CLOSE * lock["wait_s"])
    assert any(not one["tid"] and int(one["site"], 16) for one in lock["blame"]), "none is retired"


def test_who_holds_it_now_is_to_blame_for_what_goes_on(start_target: StartTarget) -> None:
    target = start_target("hold_100ms")
    truth = target.truth()
    target.go_on()
    target.expect("held")
    wanters = {one["tid"] for one in truth["wanters"]}

    def all_wait(document: dict[str, Any]) -> bool:
        return set(tool.lock_named(document, "g_slow_lock")["waiters"]) == wanters

    first = tool.scan_until(target.pid, all_wait, "that all wait")
    second = tool.snapshot(target.pid)
    before, after = (tool.lock_named(one, "g_slow_lock") for one in (first, second))
    holder = truth["holder"], "holder_takes"
    grown = blamed(second, after)[holder] - blamed(first, before)[holder]
    assert grown == pytest.approx(after["wait_s"] - before["wait_s"], rel=0.02)
    assert grown > 0


def test_what_a_holder_waited_itself_goes_on_to_the_end_of_the_chain(
    start_target: StartTarget,
) -> None:
    target = start_target("chain_of_waits")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    near, far = (tool.lock_named(document, name) for name in ("g_near", "g_far"))
    close = CLOSE * truth["first_waited"]

    def place(one: dict[str, Any]) -> tuple[int, str, int]:
        frame = document["sites"].get(one["site"])
        return one["tid"], frame["function"] if frame else "", one["through"]

    direct = {place(one): one["wait_s"] for one in near["blame"]}
    assert sum(direct.values()) == pytest.approx(near["wait_s"], rel=1e-9)
    middle = truth["middle"]
    assert direct[middle, "take_near", 0] == pytest.approx(truth["before"], abs=close)
    assert direct[middle, "take_near", far["id"]] == pytest.approx(
        truth["middle_waited"], abs=close
    )
    roots = {(one["tid"], one["lock"]): one["wait_s"] for one in near["blame_roots"]}
    assert sum(roots.values()) == pytest.approx(near["wait_s"], rel=1e-9)
    assert roots[middle, near["id"]] == pytest.approx(truth["before"], abs=close)
    assert roots[truth["last"], far["id"]] == pytest.approx(truth["middle_waited"], abs=close)
    assert "blame_roots" not in far
    page = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout
    assert "while it waited for mutex g_far" in " ".join(page.split())
    assert "at the ends of the chains by" in page


def test_holders_are_charged_with_their_holds_alone(start_target: StartTarget) -> None:
    """A woken thread that waits for a processor waits for no holder."""
    target = start_target("crowd_on_one_mutex")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = lock_of(document, "mutex")
    named = sum(one["wait_s"] for one in lock["blame"] if one["tid"] or int(one["site"], 16))
    assert 0 < named <= truth["waiters"] * truth["held_s"] * (1 + CLOSE)
