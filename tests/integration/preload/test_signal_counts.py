"""The counts of posts, signals and broadcasts, against the program's own counts."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.attach import attach


def another_round(target: Target) -> dict[str, Any]:
    target.go_on()
    truth = target.truth()
    assert truth["failures"] == 0
    return truth


def check(found: dict[str, Any], truth: dict[str, Any], rounds: int) -> None:
    """Compare a document with the truth after ``rounds`` rounds."""
    for name, kind, figure in (
        ("g_posted", "sem", "posted"),
        ("g_full", "sem", "full"),
        ("g_signalled", "cond", "signalled"),
        ("g_cnd", "cond", "of_cnd"),
    ):
        lock = tool.lock_named(found, name)
        assert (lock["kind"], lock["signals"]) == (kind, truth[figure])
        assert (lock["acquisitions"], lock["hold_timed"], lock["hold_s"]) == (0, 0, 0)
    by_address = {int(lock["address"], 16): lock["signals"] for lock in found["locks"]}
    many = [
        by_address[truth["many_at"] + number * truth["many_size"]]
        for number in range(truth["many"])
    ]
    assert many == [rounds * (number % 3 + 1) for number in range(truth["many"])]
    others = [lock for lock in found["locks"] if lock["kind"] not in ("sem", "cond")]
    assert others
    assert {lock["signals"] for lock in others} == {0}


@pytest.mark.parametrize("level", ["counting", "contended", "all"])
def test_posts_and_signals_of_living_and_of_ended_threads_are_counted(
    start_target: StartTarget, level: str
) -> None:
    target = start_target("posts_and_cond_signals", level=level)
    target.expect("ready")
    another_round(target)
    truth = another_round(target)
    check(tool.snapshot(target.pid), truth, 2)


def test_an_interval_has_the_signals_since_the_earlier_scan(start_target: StartTarget) -> None:
    target = start_target("posts_and_cond_signals")
    target.expect("ready")
    source = attach(target.pid)
    try:
        before = another_round(target)
        earlier = source.scan()
        truth = another_round(target)
        found = document(source.scan(resolve=True), earlier)
    finally:
        source.close()
    check(found, truth, 2)
    for name, figure in (("g_posted", "posted"), ("g_signalled", "signalled")):
        lock = tool.lock_named(found, name)
        assert lock["interval"]["signals"] == truth[figure] - before[figure]
    assert tool.lock_named(found, "g_full")["interval"]["signals"] == 0


def test_a_wait_for_an_object_without_signals_shows_zero_signals(
    start_target: StartTarget,
) -> None:
    target = start_target("posts_and_cond_signals")
    target.expect("ready")
    another_round(target)

    def all_wait(found: dict[str, Any]) -> bool:
        waiters = [len(tool.lock_named(found, name)["waiters"]) for name in names]
        return waiters == [2, 1]

    names = ("g_unsignalled", "g_unposted")
    found = tool.scan_until(target.pid, all_wait, "three waiting threads")
    assert [tool.lock_named(found, name)["signals"] for name in names] == [0, 0]
    page = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout.splitlines()
    rows = [line.split() for line in page]
    assert [row for row in rows if row[-1:] == ["g_unsignalled"]][-1][-3:-1] == ["0", "cond"]
    assert [row for row in rows if row[-1:] == ["g_unposted"]][-1][-3:-1] == ["0", "sem"]


def test_a_dormant_library_counts_no_signals(start_target: StartTarget) -> None:
    target = start_target("posts_and_cond_signals", level="dormant")
    target.expect("ready")
    before = another_round(target)
    assert tool.run("ctl", "-p", target.pid, "--level", "contended").returncode == 0
    after = another_round(target)
    counted = {figure: after[figure] - before[figure] for figure in ("posted", "signalled")}
    found = tool.snapshot(target.pid)
    for name, figure in (("g_posted", "posted"), ("g_signalled", "signalled")):
        assert tool.lock_named(found, name)["signals"] == counted[figure]
    assert tool.run("ctl", "-p", target.pid, "--level", "dormant").returncode == 0
    another_round(target)
    assert tool.run("ctl", "-p", target.pid, "--level", "blocks").returncode == 0
    found = tool.snapshot(target.pid)
    assert tool.lock_named(found, "g_posted")["signals"] == counted["posted"]


@pytest.mark.parametrize("level", ["contended", "all"])
def test_a_post_in_a_signal_handler_counts_also_during_another_post(
    start_target: StartTarget, level: str
) -> None:
    target = start_target("handler_posts_semaphores", "report", level=level)
    truth = target.truth()
    target.expect("ok")
    found = tool.snapshot(target.pid)
    lock = tool.lock_named(found, "g_posts")
    assert (lock["signals"], lock["acquisitions"]) == (truth["posts"], truth["waits"])
    fresh = [
        one["signals"]
        for one in found["locks"]
        if truth["fresh_at"] <= int(one["address"], 16) < truth["fresh_end"]
    ]
    assert (len(fresh), sum(fresh)) == (truth["fresh"], truth["handled"])


def test_signals_of_the_old_version_of_conditions_are_counted(start_target: StartTarget) -> None:
    target = start_target("old_cond_version")
    target.expect("ok")
    found = tool.snapshot(target.pid)
    assert tool.lock_named(found, "g_old_cond")["signals"] == 2000
    assert tool.lock_named(found, "g_made")["signals"] == 1
    assert target.finish() == (0, [])
