"""Marks as the throughput of `locktop whatif`: the program counts its transactions itself."""

from __future__ import annotations

import json
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.eventually import until
from support.recordings import end_of, recording
from support.targets import StartTarget, Target

from locktop.collector.extensions.whatif.evidence import observe
from locktop.collector.recording.segments import open_recording
from locktop.collector.sources.attach import attach

FLAGS = ("-lm",)
#: Threads that set a mark in each round, and others that never do so.
TWO_GROUPS = ("8:s2000,L40,s1000,U,s200,M1", "8:s3000,L41,s1000,U")
#: The second stage of a queue sets the marks, while it holds a lock.
QUEUE = ("4:s2000,P1", "8:G1,s2000,L40,s500,M2,U")
#: A mark in each 50th round of a thread: at most 20 a second.
RARE = ("8:s2000,L40,s1000,U,M1/50",)
THREADS = 16
#: A busy host may stop the program for the time before or after the recorded span.
TRIES = 8


def truth(target: Target) -> tuple[list[int], float]:
    """Return how many rounds each group has done, and the program's own clock, seconds."""
    target.go_on()
    line = target.truth()
    return line["rounds"], line["seconds"]


def rounds(target: Target) -> list[int]:
    return truth(target)[0]


def whatif(*arguments: str | int | Path) -> dict[str, Any]:
    # One change takes a fifth of the time that the likely ones take.
    done = tool.run("whatif", *map(str, arguments), "--cpus", "4", "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(("groups", "marking"), [(TWO_GROUPS, 0), (QUEUE, 1)])
def test_each_mark_is_a_transaction_of_the_threads_that_set_it(
    start_target: StartTarget, groups: tuple[str, ...], marking: int
) -> None:
    target = start_target("lock_rounds", *groups, flags=FLAGS)
    target.expect("ready")
    ratios = []
    for _ in range(TRIES):
        before, began_s = truth(target)
        document = whatif("-p", target.pid, "-d", "2")
        after, ended_s = truth(target)
        throughput = document["throughput"]
        assert (throughput["kind"], throughput["lock"]) == ("marks", None)
        assert throughput["unit"] == f'transactions: marks "mark {marking + 1}"'
        made = after[marking] - before[marking]
        # The program goes on before and after the span, so it makes more.
        assert 0 < throughput["per_s"] * document["duration_s"] <= made + THREADS
        ratios.append(throughput["per_s"] / made * (ended_s - began_s))
        if 0.8 < ratios[-1] < 1.25:
            return
    raise AssertionError(ratios)


@pytest.mark.parametrize("level", ["contended", "all"])
def test_the_marks_of_a_span_lie_between_the_holds_of_their_threads(
    start_target: StartTarget, level: str
) -> None:
    target = start_target("lock_rounds", *TWO_GROUPS, level=level, flags=FLAGS)
    target.expect("ready")
    before = rounds(target)[0]
    source = attach(target.pid)
    try:
        evidence = observe(source, target.pid, 1.0).evidence
    finally:
        source.close()
    made = rounds(target)[0] - before
    assert not evidence.losses
    assert {one.text for one in evidence.marks} == {"mark 1"}
    # Each thread has one mark behind each hold. The span begins and ends anywhere in this order.
    events: dict[int, list[tuple[int, str]]] = {}
    for mark in evidence.marks:
        assert evidence.from_ns <= mark.time_ns < evidence.to_ns
        events.setdefault(mark.tid, []).append((mark.time_ns, "mark"))
    assert len(events) == 8
    for one in evidence.records:
        if one.tid in events and one.got_ns < evidence.to_ns:
            events[one.tid].append((one.got_ns, "hold"))
    for of_thread in events.values():
        words = [word for _, word in sorted(of_thread)]
        assert all(a != b for a, b in pairwise(words))
    counts = Counter(mark.tid for mark in evidence.marks)
    assert 8 <= sum(counts.values()) <= made + 8


def test_rare_marks_are_no_transactions_unless_they_are_named(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", *RARE, flags=FLAGS)
    target.expect("ready")
    document = whatif("-p", target.pid, "-d", "2")
    assert document["throughput"]["kind"] == "rounds"
    named = whatif("-p", target.pid, "-d", "2", "--throughput", "mark:mark 1")
    assert (named["throughput"]["kind"], named["throughput"]["mark"]) == ("marks", "mark 1")
    assert named["throughput"]["per_s"] < document["throughput"]["per_s"] / 20
    assert named["refusal"] == "few rounds"


def test_a_lock_and_rounds_come_before_marks(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", *TWO_GROUPS, flags=FLAGS)
    target.expect("ready")
    for wanted, kind in (("mutexes[41]", "lock"), ("rounds", "rounds")):
        document = whatif("-p", target.pid, "-d", "1", "--throughput", wanted)
        assert (document["throughput"]["kind"], document["throughput"]["mark"]) == (kind, None)


def test_text_names_the_mark(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", *TWO_GROUPS, flags=FLAGS)
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid, "-d", "1", "--cpus", "4")
    assert done.returncode in (0, 3), done.stderr
    assert ' transactions a second: marks "mark 1"\n' in done.stdout


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("mark:commit", "--throughput mark:commit: there was no such mark; the marks were: mark 1"),
        ("mark:", "--throughput mark:: the form is --throughput mark:TEXT"),
    ],
)
def test_a_mark_that_is_not_there_is_reported(
    start_target: StartTarget, named: str, said: str
) -> None:
    target = start_target("lock_rounds", *TWO_GROUPS, flags=FLAGS)
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid, "-d", "1", "--throughput", named)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_recording_has_each_mark(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("lock_rounds", *TWO_GROUPS, level="all", flags=FLAGS)
    target.expect("ready")
    path = tmp_path / "recording"
    start = rounds(target)[0]
    with recording(target.pid, path, "--every", "100ms") as recorder:
        first = rounds(target)[0]
        until(lambda: rounds(target)[0] > first + 2000, "2000 rounds are recorded")
        last = rounds(target)[0]
        recorder.process.send_signal(signal.SIGTERM)
        assert end_of(recorder).lost == 0
    made = rounds(target)[0]
    opened = open_recording(path)
    marks = len(opened.marks(0, 1 << 62))
    opened.close()
    # A thread sets the mark before it counts the round.
    assert last - first - THREADS <= marks <= made + THREADS
    assert start <= first
    document, of_lock = whatif(path), whatif(path, "--throughput", "mutexes[40]")
    assert document["throughput"]["mark"] == "mark 1"
    assert of_lock["throughput"]["kind"] == "lock"
    ratio = document["throughput"]["per_s"] / of_lock["throughput"]["per_s"]
    assert ratio == pytest.approx(1, rel=0.05)
