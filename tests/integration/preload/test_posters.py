"""Holders of semaphores, by their posts while threads wait, against what the program measured."""

from __future__ import annotations

from collections import Counter

import pytest
from support import tool
from support.past import held_ns, past
from support.targets import StartTarget

from locktop.collector.render.text import timeline

_ROUNDS = 5
#: Of all charges together: each is rounded to the unit of lt_lock.waits.
_ROUNDING_S = 1e-4


@pytest.mark.parametrize("name", ["g_lock", "g_slots"])
def test_waits_for_a_semaphore_that_is_a_lock_are_blamed_on_the_poster_that_had_a_unit(
    start_target: StartTarget, name: str
) -> None:
    target = start_target("semaphores_as_locks")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = tool.lock_named(document, name)
    charged = [entry for entry in lock["blame"] if entry["tid"]]
    assert {entry["tid"] for entry in charged} == {truth["holder"]}
    least, most = truth[name]
    assert least - _ROUNDING_S <= sum(entry["wait_s"] for entry in charged) <= most + _ROUNDING_S
    functions = {document["sites"][entry["site"]]["function"] for entry in charged}
    assert functions == {"post_while_wanted"}
    assert not lock["idle"]
    assert not lock["hold_timed"]
    text = " ".join(tool.run("snapshot", "-p", target.pid, "--format", "text").stdout.split())
    assert "as posts while threads waited show" in text
    target.go_on()
    assert target.finish() == (0, [])


def test_who_posts_work_holds_nothing(start_target: StartTarget) -> None:
    target = start_target("semaphores_as_locks", "awaited")
    with past(target) as scans:
        scans.scan()
        target.go_on()
        truth = target.truth()
        scans.scan()
        line = scans.line()
    document = tool.snapshot(target.pid)
    work = tool.lock_named(document, "g_work")
    assert work["idle"]
    assert not work.get("blame")
    names = {lock.id: lock.name for lock in line.snapshot.locks}
    passed = Counter((names[flow.lock], flow.from_tid, flow.to_tid) for flow in line.flows)
    pair = truth["holder"], truth["waiter"]
    assert passed == {
        ("g_lock", *pair): _ROUNDS,
        ("g_slots", *pair): _ROUNDS,
    }
    assert " posted it at " in timeline.render(line, 80)
    target.go_on()
    assert target.finish() == (0, [])


def test_holds_that_began_with_a_wait_are_on_the_time_line(start_target: StartTarget) -> None:
    """The first turn takes the unit while it is free, and nobody waits when the last one ends."""
    target = start_target("semaphore_turns")
    with past(target) as scans:
        scans.scan()
        target.go_on()
        truth = target.truth()
        scans.scan()
        line = scans.line()
    (turn,) = (lock for lock in line.snapshot.locks if lock.name == "g_turn")
    for tid, least_s, most_s in truth.values():
        held_s = held_ns(line, tid, turn.id) * 1e-9
        assert least_s - _ROUNDING_S <= held_s <= most_s + _ROUNDING_S
    assert not turn.hold_timed, "its holds that began without a wait have no length"
    text = " ".join(timeline.render(line, 80).split())
    assert "as posts while threads waited show, of holds that began with a wait" in text
    target.go_on()
    assert target.finish() == (0, [])
