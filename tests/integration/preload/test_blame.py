"""The blame of each holder, against the times that the threads noted themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from support import tool
from support.targets import StartTarget

from locktop.collector.render.words.units import duration

#: The tolerance, as a share of all waiting. Some code runs between the readings of the two clocks,
#: and the kernel may interrupt the thread there.
CLOSE = 0.08

#: Seconds by the tid and the function of a hold.
Seconds = defaultdict[tuple[int, str], float]


class Turn(NamedTuple):
    """One turn of a thread: the times of its request, of the lock and of the release, seconds."""

    tid: int
    function: str
    shared: int
    requested: float
    taken: float
    released: float


def waited_for(turns: list[Turn]) -> Seconds:
    """Return how long other threads waited for each holder, by tid and function."""
    found: Seconds = defaultdict(float)
    for waiter in turns:
        for holder in turns:
            if holder.tid != waiter.tid:
                begin = max(waiter.requested, holder.taken)
                end = min(waiter.taken, holder.released)
                found[holder.tid, holder.function] += max(0.0, end - begin)
    return found


def waited_for_any(turns: list[Turn]) -> float:
    """Return how long threads waited for the lock while at least one other one held it."""
    found = 0.0
    for waiter in turns:
        at = waiter.requested
        for holder in sorted(turns, key=lambda turn: turn.taken):
            if holder.tid != waiter.tid:
                begin, end = max(at, holder.taken), min(waiter.taken, holder.released)
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


def turns_of(truth: dict[str, Any]) -> list[Turn]:
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
def test_each_holder_is_charged_with_the_waits_of_others(
    name: str, kind: str, start_target: StartTarget
) -> None:
    target = start_target("waits_and_holds_logged", name)
    turns = turns_of(target.truth())
    document = tool.snapshot(target.pid)
    lock = lock_of(document, kind)
    assert sum(one["wait_s"] for one in lock["blame"]) == pytest.approx(lock["wait_s"], rel=1e-9)
    truth, seen = waited_for(turns), blamed(document, lock)
    assert sum(map(bool, truth.values())) >= 8, "four threads, two functions"
    for holder in {*truth, *seen} - {(0, "")}:
        assert seen[holder] == pytest.approx(truth[holder], abs=CLOSE * lock["wait_s"]), holder


def test_a_reader_is_charged_for_no_more_than_its_own_holds(start_target: StartTarget) -> None:
    """Of several readers at the same time, the library charges the one that leaves first."""
    target = start_target("waits_and_holds_logged", "read")
    turns = turns_of(target.truth())
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


def test_the_holds_of_ended_threads_are_charged_by_function(start_target: StartTarget) -> None:
    target = start_target("waits_and_holds_logged", "many")
    turns = turns_of(target.truth())
    document = tool.snapshot(target.pid)
    lock = lock_of(document, "mutex")
    truth: dict[str, float] = defaultdict(float)
    for (_, function), wait_s in waited_for(turns).items():
        truth[function] += wait_s
    seen: dict[str, float] = defaultdict(float)
    for (_, function), wait_s in blamed(document, lock).items():
        seen[function] += wait_s
    for function in ("take_here", "take_there"):
        assert seen[function] == pytest.approx(truth[function], abs=CLOSE * lock["wait_s"])
    ended = [one for one in lock["blame"] if not one["tid"] and int(one["site"], 16)]
    assert ended, "the blame of ended threads has no tid"


def test_the_holder_is_charged_with_waits_that_still_last(start_target: StartTarget) -> None:
    target = start_target("hold_100ms", "1")
    truth = target.truth()
    target.go_on()
    target.expect("held")
    wanters = {one["tid"] for one in truth["wanters"]}

    def all_wait(document: dict[str, Any]) -> bool:
        return set(tool.lock_named(document, "g_slow_lock")["waiters"]) == wanters

    first = tool.scan_until(target.pid, all_wait, "the waits of all wanters")
    second = tool.snapshot(target.pid)
    before, after = (tool.lock_named(one, "g_slow_lock") for one in (first, second))
    holder = truth["holder"], "holder_takes"
    grown = blamed(second, after)[holder] - blamed(first, before)[holder]
    assert grown == pytest.approx(after["wait_s"] - before["wait_s"], rel=0.02)
    assert grown > 0


def test_the_wait_of_a_holder_is_charged_to_the_end_of_the_chain(
    start_target: StartTarget,
) -> None:
    target = start_target("chain_of_waits")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    near, far = (tool.lock_named(document, name) for name in ("g_near", "g_far"))
    close = CLOSE * truth["first_waited"]

    def key(one: dict[str, Any]) -> tuple[int, str, int]:
        frame = document["sites"].get(one["site"])
        return one["tid"], frame["function"] if frame else "", one["through"]

    direct = {key(one): one["wait_s"] for one in near["blame"]}
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


def test_a_crowd_of_nested_locks_has_its_chains_in_bounded_time(start_target: StartTarget) -> None:
    """The paths of the chains are far too many to follow one by one."""
    target = start_target("nested_crowd")
    target.expect("ready")
    document = tool.snapshot(target.pid)
    chained = [lock for lock in document["locks"] if "blame_roots" in lock]
    assert len(chained) > 30
    for lock in chained:
        blame_s = sum(one["wait_s"] for one in lock["blame"])
        assert sum(root["wait_s"] for root in lock["blame_roots"]) == pytest.approx(blame_s)
    target.finish()


def test_holders_are_charged_with_their_holds_alone(start_target: StartTarget) -> None:
    """A woken thread that waits for a processor waits for no holder."""
    target = start_target("crowd_on_one_mutex")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = lock_of(document, "mutex")
    named = sum(one["wait_s"] for one in lock["blame"] if one["tid"] or int(one["site"], 16))
    assert 0 < named <= truth["waiters"] * truth["held_s"] * (1 + CLOSE)
    woken = lock["unheld_wait_s"]
    assert woken > 0, "one processor"
    assert named + woken == pytest.approx(lock["wait_s"], rel=1e-9)
    page = " ".join(tool.run("snapshot", "-p", target.pid, "--format", "text").stdout.split())
    divided = re.search(
        r"g_crowded: of (\S+ \S+) of waiting, (\S+ \S+) behind holders,"
        r" (\S+ \S+) woken and not yet running",
        page,
    )
    assert divided is not None, page
    assert divided.groups() == tuple(map(duration, (lock["wait_s"], named, woken)))
