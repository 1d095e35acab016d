"""A misuse of pthreads is reported once for each source location; correct use is not."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget

from locktop.collector.render.documents.snapshot_codec import document as as_json
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach


def scan(pid: int) -> tuple[dict[str, Any], str]:
    """Return a snapshot as a JSON document, and as a text report."""
    with closing(attach(pid)) as source:
        snapshot = source.scan(resolve=True)
    return as_json(snapshot), report.render(snapshot)


@pytest.mark.parametrize(
    ("what", "kind", "lock", "words"),
    [
        ("others", "released_others", "g_wrong", "released it while thread"),
        ("wrothers", "released_others", "g_wrong_rw", "released it while thread"),
        ("free", "released_free", "g_wrong", "released it while no thread held it"),
        ("nevertaken", "released_free", "g_wrong", "released it while no thread held it"),
        ("waitunheld", "waited_unheld", "g_wrong", "with it while no thread held it"),
        ("rwfreedestroy", "released_free", "g_wrong_rw", "released it while no thread held it"),
        ("rwfree", "released_free", "g_wrong_rw", "released it while no thread held it"),
        ("again", "taken_again", "g_wrong", "requested the lock while it held it"),
        ("wragain", "taken_again", "g_wrong_rw", "requested the lock while it held it"),
        ("destroyheld", "destroyed_held", "g_wrong", "destroyed it while it held it"),
        ("destroyothers", "destroyed_held", "g_wrong", "destroyed it while thread"),
        ("destroyrw", "destroyed_held", "g_wrong_rw", "destroyed it while a thread held it"),
        (
            "destroywaited",
            "destroyed_waited",
            "g_wrong",
            "destroyed it while a thread waited",
        ),
        ("twomutexes", "two_mutexes", "g_wrong_cond", "at that time: mutex g_right"),
        ("kept", "kept_at_end", "g_wrong", "ended while it held the lock"),
    ],
)
def test_a_misuse_is_reported_with_its_lock_and_its_function(
    what: str, kind: str, lock: str, words: str, start_target: StartTarget
) -> None:
    target = start_target("pthread_misuses", what)
    target.expect("ready")
    document, page = scan(target.pid)
    (found,) = document["misuses"]
    locks = {one["id"]: one["name"] for one in document["locks"]}
    assert (found["kind"], locks[found["lock"]], found["count"]) == (kind, lock, 1)
    functions = tool.functions(document, found["stack"])
    misuser = {"two_mutexes": "wait_with", "kept_at_end": "keep"}.get(kind, "do_wrong")
    assert misuser in functions
    if kind == "two_mutexes":
        assert locks[found["other"]] == "g_right"
    if what in ("others", "wrothers", "destroyothers"):
        assert found["other"] == target.pid != found["tid"]
    assert "MISUSES OF LOCKS" in page
    assert words in " ".join(page.split())


def test_correct_use_is_not_reported(start_target: StartTarget) -> None:
    target = start_target("pthread_misuses")
    target.expect("ready")
    document, _ = scan(target.pid)
    assert document["misuses"] == []
    assert {"g_right", "g_right_rw"} <= {lock["name"] for lock in document["locks"]}


def test_signals_without_a_waiter_are_counted_and_are_no_misuse(start_target: StartTarget) -> None:
    target = start_target("pthread_misuses", "unheard")
    target.expect("ready")
    document, _ = scan(target.pid)
    condition = tool.lock_named(document, "g_wrong_cond")
    assert (condition["signals"], condition["unheard"]) == (5, 4)
    assert document["misuses"] == []


def test_a_childs_wait_for_a_lock_held_at_the_fork_is_a_misuse(start_target: StartTarget) -> None:
    target = start_target("child_wants_held_lock")
    truth = target.truth()

    def waits(document: dict[str, Any]) -> bool:
        return bool(document["misuses"] and document["deadlocks"])

    document = tool.scan_until(truth["child"], waits, "the wait of the child")
    (found,) = document["misuses"]
    assert (found["kind"], found["other"]) == ("held_at_fork", truth["holder"])
    assert tool.functions(document, found["stack"])[0] == "ask_in_child"
    (deadlock,) = document["deadlocks"]
    assert deadlock["certain"]
    assert [edge["held_by"] for edge in deadlock["cycle"]] == [truth["holder"]]
    done = tool.run("check", "-p", truth["child"])
    assert done.returncode == 1
    assert "which is gone" in done.stdout
    assert "has ended" not in done.stdout, "the holder is a living thread of the parent"
    assert tool.snapshot(target.pid)["misuses"] == []


def test_a_child_may_use_a_lock_that_an_atfork_handler_took(start_target: StartTarget) -> None:
    target = start_target("child_wants_held_lock", "handlers")
    child = target.truth()["child"]
    target.expect("got it")
    assert tool.snapshot(child)["misuses"] == []
