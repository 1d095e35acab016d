"""The records of each level, and switches of the level while the program runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import rights, tool
from support.screen import Screen
from support.targets import StartTarget, Target, start_time


def records(document: dict[str, Any], name: str) -> list[tuple[int, bool]]:
    """Return the thread of each record of a lock, oldest first, and whether that thread waited."""
    lock = tool.lock_named(document, name)
    events = [event for event in document["events"] if event["lock"] == lock["id"]]
    events.sort(key=lambda event: -event["ago_s"])
    return [(event["tid"], event["wait_s"] > 0) for event in events]


def round_of(target: Target) -> tuple[dict[str, Any], dict[str, Any]]:
    target.go_on()
    truth = target.truth()
    return truth, tool.snapshot(target.pid)


def test_level_contended_records_only_waits(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    truth, document = round_of(target)
    assert records(document, "g_met") == [(truth["waiter"], True)]
    assert records(document, "g_lone") == records(document, "g_again") == []


def test_level_blocks_also_records_the_holds_with_a_waiter(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three", level="blocks")
    target.expect("ready")
    truth, document = round_of(target)
    assert records(document, "g_met") == [(truth["holder"], False), (truth["waiter"], True)]
    assert records(document, "g_lone") == records(document, "g_again") == []
    lock = tool.lock_named(document, "g_met")
    whole = [
        event["hold_s"]
        for event in document["events"]
        if (event["lock"], event["tid"]) == (lock["id"], truth["holder"])
    ]
    assert whole == [pytest.approx(truth["met_s"], rel=0.05)]


def test_level_all_records_every_hold(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three", level="all")
    target.expect("ready")
    truth, document = round_of(target)
    holder, waiter = truth["holder"], truth["waiter"]
    assert records(document, "g_met") == [
        (holder, False),
        (holder, False),
        (waiter, True),
        (holder, False),
    ]
    assert records(document, "g_lone") == truth["lone"] * [(holder, False)]
    again = tool.lock_named(document, "g_again")
    whole = [event for event in document["events"] if event["lock"] == again["id"]]
    assert [event["hold_s"] for event in whole] == [pytest.approx(truth["again_s"], rel=0.05)]
    assert tool.lock_named(document, "g_lone")["hold_timed"] == truth["lone"]


def ctl(target: Target, level: str) -> str:
    done = tool.run("ctl", "-p", target.pid, "--level", level)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().rpartition(": ")[2]


def test_each_switch_takes_effect_in_the_next_round(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    assert tool.run("ctl", "-p", target.pid).stdout.endswith(": contended\n")
    round_of(target)
    assert ctl(target, "all") == "contended -> all"
    truth, document = round_of(target)
    assert len(records(document, "g_lone")) == truth["lone"]
    # The first hold began before the switch, so it has no record. The second hold has one.
    assert records(document, "g_across") == []
    assert tool.lock_named(document, "g_across")["holders"] == [truth["holder"]]
    truth, document = round_of(target)
    assert records(document, "g_across") == [(truth["holder"], False)]
    assert ctl(target, "contended") == "all -> contended"
    lone = len(records(document, "g_lone"))
    truth, document = round_of(target)
    assert len(records(document, "g_lone")) == lone
    lock = tool.lock_named(document, "g_lone")
    assert lock["acquisitions"] == 4 * truth["lone"]
    assert (document["complete"], document["deadlocks"]) == (True, [])


def test_a_dormant_library_forgets_the_held_locks(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    truth, document = round_of(target)
    assert tool.lock_named(document, "g_across")["holders"] == [truth["holder"]]
    before = tool.lock_named(document, "g_lone")["acquisitions"]
    assert ctl(target, "dormant") == "contended -> dormant"
    target.go_on()
    target.truth()
    assert ctl(target, "counting") == "dormant -> counting"
    target.go_on()
    target.truth()
    document = tool.snapshot(target.pid)
    assert tool.lock_named(document, "g_lone")["acquisitions"] == before + truth["lone"]
    assert tool.lock_named(document, "g_across")["holders"] == [truth["holder"]]
    assert not document["complete"]


def test_an_unknown_level_is_one_line_and_status_2(start_target: StartTarget) -> None:
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    done = tool.run("ctl", "-p", target.pid, "--level", "loud")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_the_screen_sets_the_level_and_shows_changes_of_others(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        screen.until(lambda text: "records waits (key L)" in text, "the level")
        screen.press("L")
        screen.until(lambda text: "WHAT IT DOES" in text, "the choice")
        screen.press("Down", "Enter")
        screen.until(lambda text: "Set blocks?" in text, "the question")
        screen.press("y")
        screen.until(lambda text: "Level blocks, was contended" in text, "the confirmation")
        screen.until(
            lambda text: "records waits, holds (key L)" in text.splitlines()[1], "the new level"
        )
        truth, document = round_of(target)
        assert (truth["holder"], False) in records(document, "g_met")
        ctl(target, "dormant")
        screen.until(
            lambda text: "records nothing (key L)" in text.splitlines()[1], "the change by ctl"
        )
        screen.until(lambda text: "is dormant" in text.splitlines()[2], "the note about it")
        screen.press("L")
        screen.until(lambda text: "dormant now" in text, "the choice again")
        target.kill()
        screen.press("Up", "Enter")
        screen.until(lambda text: "ENDED" in text, "the end")
        screen.press("L")
        screen.until(lambda text: "there is no level to set" in text, "the reason")
        screen.press("q")
        assert screen.status() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_user_may_not_set_the_level(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    rights.need_open_checkout()
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    Path(f"/dev/shm/locktop-{target.pid}-{start_time(target.pid)}").chmod(0o644)
    nobody = [str(need("setpriv")), "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    done = tool.run_alone("ctl", "-p", target.pid, "--level", "all", prefix=nobody)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("locktop: cannot set the level: ")
    assert line.endswith("belongs to user root (uid 0); run locktop as that user or as root")
    assert tool.run("ctl", "-p", target.pid).stdout.endswith(": contended\n")
