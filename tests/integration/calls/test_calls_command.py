"""`locktop calls`: against the program's own counts, and in snapshots and recordings."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.call_trees import INSTRUMENTED
from support.screen import Screen
from support.targets import StartTarget

Need = Callable[..., Path]
NAMES = ("most", "some", "little")
ROUNDS = 10


def calls(*arguments: str | int) -> dict[str, Any]:
    done = tool.run("calls", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def counts(document: dict[str, Any]) -> list[int]:
    by_name = {one["function"]: one["count"] for one in document["functions"]}
    return [by_name.get(name, 0) for name in NAMES]


def own_times(document: dict[str, Any]) -> list[float]:
    by_name = {one["function"]: one["own_s"] for one in document["functions"]}
    return [by_name[name] for name in NAMES]


def test_the_times_are_those_of_the_program(start_target: StartTarget) -> None:
    """A busy neighbour may interrupt the program between its own clock and ours, in some rounds."""
    target = start_target("call_times", flags=INSTRUMENTED)
    before, before_s = [0.0] * 3, [0.0] * 3
    for _ in range(ROUNDS):
        truth_s = target.truth()["seconds"]
        found = own_times(calls("-p", target.pid))
        of_round = [one - former for one, former in zip(found, before, strict=True)]
        expected = [one - former for one, former in zip(truth_s, before_s, strict=True)]
        assert all(one > 0.99 * s for one, s in zip(of_round, expected, strict=True))
        if of_round == pytest.approx(expected, rel=0.02):
            return
        before, before_s = found, truth_s
        target.go_on()
    pytest.fail(f"{of_round} is never {expected}")


def test_counts_and_sums_are_those_of_the_program(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    truth = target.truth()
    document = calls("-p", target.pid)
    assert counts(document) == truth["counts"]
    own_s = sum(one["own_s"] for one in document["functions"])
    assert own_s == pytest.approx(document["traced_s"], rel=0.01)
    assert document["nodes"][0]["function"] == "main"
    assert document["nodes"][0]["depth"] == 0
    alone = calls("-p", target.pid, "--tid", target.pid, "--flat")
    assert counts(alone) == truth["counts"]
    assert "nodes" not in alone
    text = tool.run("calls", "-p", target.pid).stdout
    assert "FUNCTIONS, by own time" in text
    assert "CALL TREE" in text


def test_an_interval_has_its_own_calls_alone(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    target.truth()
    document = calls("-p", target.pid, "-d", "0.2")
    assert counts(document) == [0, 0, 0]
    assert {one["function"] for one in document["functions"]} == {"main", "hear"}


def test_a_snapshot_and_a_recording_have_the_calls(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    first = target.truth()
    saved, recording = str(tmp_path / "s.json"), str(tmp_path / "r")
    assert tool.run("snapshot", "-p", target.pid, "--calls", "-o", saved).returncode == 0
    recorder = tool.start("record", "-p", target.pid, "-o", recording, "--every", "100ms")
    assert recorder.stderr is not None
    assert "recording" in recorder.stderr.readline()
    target.go_on()
    second = target.truth()
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=tool.PATIENCE_S)
    assert counts(calls(saved)) == first["counts"]
    assert counts(calls(recording, "--at", "+0s")) == first["counts"]
    assert counts(calls(recording)) == second["counts"]
    span = calls(recording, "--from", "+0s")
    pairs = zip(second["counts"], first["counts"], strict=True)
    assert counts(span) == [later - earlier for later, earlier in pairs]


def test_without_instrumentation_one_line_says_how_to_build(start_target: StartTarget) -> None:
    target = start_target("call_times")
    target.truth()
    done = tool.run("calls", "-p", target.pid)
    assert (done.returncode, done.stdout) == (2, "")
    assert "-finstrument-functions" in done.stderr
    assert done.stderr.count("\n") == 1
    assert tool.run("ctl", "-p", target.pid, "--calls", "off").returncode == 0
    done = tool.run("calls", "-p", target.pid)
    assert done.returncode == 2
    assert f"`locktop ctl -p {target.pid} --calls on`" in done.stderr


def test_patterns_that_match_no_call_are_in_the_message(start_target: StartTarget) -> None:
    names = {"LOCKTOP_CALLS_MATCH": "mst,main()"}
    target = start_target("call_times", flags=INSTRUMENTED, environment=names)
    target.truth()
    done = tool.run("calls", "-p", target.pid)
    assert (done.returncode, done.stdout) == (2, "")
    assert "LOCKTOP_CALLS_MATCH=mst,main()" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_the_screen_shows_the_live_tree(
    start_target: StartTarget, need: Need, width: int, height: int
) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    target.truth()
    with Screen(need("tmux"), "calls", "-p", target.pid, width=width, height=height) as screen:
        screen.until(lambda text: "By time in calls" in text and "hear" in text, "the tree")
        screen.press("v")
        screen.press("v")
        screen.until(lambda text: "By calls 1.6" in text, "the number of calls")
        target.go_on()
        target.truth()
        screen.until(lambda text: "By calls 3.2" in text, "the calls of the second round")
        screen.press("Escape")
        screen.until(lambda text: "Locks by" in text, "the monitor beneath")
        screen.press("C")
        screen.until(lambda text: "By time in calls" in text, "the tree again")
        screen.press("q")
        assert screen.status() == 0
