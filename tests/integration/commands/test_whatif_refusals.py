"""The refusals of `locktop whatif`: of all changes, of single ones, of options that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.eventually import until
from support.recordings import end_of, recording
from support.targets import StartTarget
from support.whatif import answer

from locktop.collector.extensions.whatif.evidence import observe
from locktop.collector.sources.attach import attach

FLAGS = ("-lm",)
CROWD = "16:s2000,L40,s1000,U"
#: The last of four threads wakes all others with a broadcast.
MEETING = "4:s2000,A1"
#: A thread takes a lock once, and sleeps for ten minutes then.
QUIET = "1:L9,U,s600000000"


def refused(*arguments: str | int) -> dict[str, Any]:
    done = tool.run("whatif", *arguments, "--format", "json")
    assert done.returncode == 3, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_change_that_is_refused_leaves_the_others_as_they_are(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, MEETING, flags=FLAGS)
    target.expect("ready")
    changes = ("--threads", "group1=2", "--hold", "mutexes[40]=0.5x", "--threads", "group0-#=4")
    document = answer("-p", target.pid, "-d", "2", *changes)
    assert {one["kind"] for one in document["predictions"]} == {"hold", "threads"}
    [threads] = [one for one in document["predictions"] if one["kind"] == "threads"]
    assert threads["group"] == "group0"
    [one] = document["refused"]
    assert (one["text"], one["reason"]) == ("group1: 2 threads", "dependent threads")
    assert document["why"] is None


def test_text_lists_a_refused_change(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, MEETING, flags=FLAGS)
    target.expect("ready")
    said = "group1: 2 threads: no prediction (dependent threads): the threads of this group"

    def is_listed() -> bool:
        """Return whether the replay is like the recording, which a busy host may prevent."""
        done = tool.run("whatif", "-p", target.pid, "-d", "1", "--threads", "group1=2")
        assert done.returncode == 3, done.stderr
        assert "critical path" in done.stdout
        return said in done.stdout and "No prediction (" not in done.stdout

    until(is_listed, "the change is refused alone")


def test_a_program_that_uses_no_lock_has_too_few_rounds(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", QUIET, flags=FLAGS)
    target.expect("ready")
    document = refused("-p", target.pid, "-d", "0.1")
    assert document["refusal"] == "few rounds"
    assert document["why"].startswith("the process used its locks too seldom in this time; ")
    done = tool.run("whatif", "-p", target.pid, "-d", "0.1")
    assert "No prediction (few rounds): " in done.stdout
    assert "replay " not in done.stdout


def test_records_from_before_the_recording_are_not_lost(start_target: StartTarget) -> None:
    small = {"LOCKTOP_RING": "16"}
    target = start_target("lock_rounds", CROWD, level="all", environment=small, flags=FLAGS)
    target.expect("ready")
    until(lambda: tool.snapshot(target.pid)["lost_events"] > 16, "records are overwritten")
    source = attach(target.pid)
    try:
        # A busy host may stop locktop for so long that records are lost in the recording.
        until(lambda: not observe(source, target.pid, 0.02).evidence.losses, "nothing is lost")
    finally:
        source.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--threads", "group1=2"], "no thread of the group group1 used a lock in the recorded ti"),
        (["--hold", "mutexes[9]=0.5x"], "nobody took lock_rounds.c: mutexes[9] in the recorded ti"),
        (["--throughput", ""], "--throughput: the form is --throughput LOCK, mark:TEXT or rounds"),
        (["--rw", ""], "the form is --rw LOCK=0.9"),
        (["--threads", "group=2"], "2 groups of threads are called like 'group': group0, group1"),
        (["-d", "100000000"], "-d 100000000: whatif records for at most 3600 s"),
    ],
)
def test_options_that_do_not_fit_are_reported_in_one_line(
    start_target: StartTarget, options: list[str], said: str
) -> None:
    target = start_target("lock_rounds", CROWD, QUIET, flags=FLAGS)
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid, "-d", "0.5", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_snapshot_with_predictions_has_the_same_longest_time(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=FLAGS)
    target.expect("ready")
    done = tool.run("snapshot", "-p", target.pid, "--whatif", "-d", "4000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "-d 4000: whatif records for at most 3600 s" in done.stderr


def test_a_moment_of_a_recording_is_the_end_of_the_span(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("lock_rounds", CROWD, level="all", flags=FLAGS)
    target.expect("ready")
    path = tmp_path / "recording"
    with recording(target.pid, path, "-d", "3", "--every", "100ms") as recorder:
        end_of(recorder)
    spans = []
    for options in ((), ("--at", "+1500ms"), ("--to", "+1500ms")):
        done = tool.run("whatif", str(path), *options, "--format", "json")
        assert done.returncode in (0, 3), done.stderr
        spans.append(json.loads(done.stdout))
    whole, at, to = spans
    assert at == to
    assert at["duration_s"] < whole["duration_s"]
    of_snapshot = tool.run("snapshot", str(path), "--whatif", "--at", "+1500ms")
    assert json.loads(of_snapshot.stdout)["whatif"] == at


def test_a_stuck_process_is_no_calm_one(start_target: StartTarget) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    document = refused("-p", target.pid, "-d", "1")
    assert document["refusal"] == "few rounds"
    assert "24 threads wait for mutex g_index_lock" in document["stuck"]
    assert "indexer holds it" in document["stuck"]
    assert document["why"].startswith(f"nothing goes on at the locks: {document['stuck']}; ")
    assert "locktop check" in document["why"]


def test_a_deadlocked_process_is_no_calm_one(start_target: StartTarget) -> None:
    target = start_target("accounts_deadlock")
    target.expect("ready")
    document = refused("-p", target.pid, "-d", "1")
    assert "deadlock: 2 threads of accounts_deadlo" in document["why"]


def test_a_calm_process_may_have_more_to_do_later(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", QUIET, flags=FLAGS)
    target.expect("ready")
    document = refused("-p", target.pid, "-d", "1")
    assert document["stuck"] == ""
    assert "more to do" in document["why"]
