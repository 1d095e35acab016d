"""Percentiles of waits and holds, against those that a program measures with its own clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget

from locktop.collector.model.histograms import bucket_of

#: Kinds that may list two threads as holders, or none.
KINDS = {"mutex": "mutex", "write": "rwlock", "read": "rwlock", "spin": "spin", "sem": "sem"}


def the_lock(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the lock of the kind that threads took most often."""
    found: dict[str, Any] = max(
        (lock for lock in document["locks"] if lock["kind"] == kind),
        key=lambda lock: lock["acquisitions"],
    )
    return found


def bucket(seconds: float, histogram: dict[str, Any]) -> int:
    return bucket_of(int(seconds * histogram["hz"]))


def assert_percentiles(
    lengths_s: Sequence[float], found: dict[int, float], histogram: dict[str, Any]
) -> None:
    """Compare with the lengths that the program measured: at most one bucket away."""
    for percent, seconds in found.items():
        rank = math.ceil(percent * len(lengths_s) / 100)
        expected = bucket(sorted(lengths_s)[rank - 1], histogram)
        assert abs(bucket(seconds, histogram) - expected) <= 1, (percent, seconds)


def assert_waits(truth: dict[str, Any], lock: dict[str, Any]) -> None:
    """A thread that ran late found the lock free, and its wait was the shortest."""
    histogram = lock["wait_histogram"]
    assert sum(histogram["counts"]) == lock["contended"] > 140
    assert histogram["left_out"] == 0
    waits = sorted(truth["waits"])[-lock["contended"] :]
    assert_percentiles(waits, {50: lock["wait_p50_s"], 99: lock["wait_p99_s"]}, histogram)


def assert_holds(truth: dict[str, Any], lock: dict[str, Any]) -> None:
    histogram = lock["hold_histogram"]
    assert sum(histogram["counts"]) == lock["hold_timed"]
    assert lock["hold_timed"] == lock["acquisitions"] == len(truth["holds"]), "long holds"
    assert_percentiles(truth["holds"], {50: lock["hold_p50_s"], 99: lock["hold_p99_s"]}, histogram)


def assert_sums(document: dict[str, Any]) -> None:
    """Each contended acquisition and each timed hold of each lock is in a histogram."""
    for lock in document["locks"]:
        histogram = lock["wait_histogram"]
        assert sum(histogram["counts"] if histogram else ()) == lock["contended"], lock["name"]
        holds = lock["hold_histogram"]
        if lock["contended"]:
            assert sum(holds["counts"] if holds else ()) == lock["hold_timed"], lock["name"]
        assert (lock["hold_p50_s"] is not None) is bool(lock["hold_timed"]), lock["name"]
    for thread in document["threads"]:
        histogram = thread["wait_histogram"]
        assert sum(histogram["counts"] if histogram else ()) == thread["contended"]


@pytest.mark.parametrize("name", KINDS)
def test_percentiles_are_those_of_the_program(name: str, start_target: StartTarget) -> None:
    target = start_target("lengths_measured", name)
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = the_lock(document, KINDS[name])
    assert_sums(document)
    assert_waits(truth, lock)
    if name == "sem":
        assert (lock["hold_p50_s"], lock["hold_histogram"]) == (None, None)
    else:
        assert_holds(truth, lock)


def test_the_counts_of_ended_threads_stay(start_target: StartTarget) -> None:
    """Threads that follow get the blocks of the ended ones, whose counts move to the lock."""
    target = start_target("lengths_measured", "mutex", "threads")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = the_lock(document, "mutex")
    kept = sum(thread["contended"] for thread in document["threads"])
    assert kept < lock["contended"], "the library kept the block of each thread"
    assert_sums(document)
    assert_waits(truth, lock)
    assert_holds(truth, lock)


def test_waits_for_work_are_no_waits_of_the_mutex(start_target: StartTarget) -> None:
    target = start_target("lengths_measured", "mutex")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    idle = tool.lock_named(document, "idle_mutex")
    assert (idle["contended"], idle["wait_histogram"], idle["wait_p99_s"]) == (0, None, None)
    main = tool.thread_of(document, truth["tid"])
    assert (main["contended"], main["wait_histogram"], main["wait_p99_s"]) == (0, None, None)
    assert main["wait_s"]["cond"] > 0


def test_an_interval_has_percentiles_of_its_own(start_target: StartTarget) -> None:
    """All waits of the lock are over."""
    target = start_target("lengths_measured", "mutex")
    target.truth()
    lock = the_lock(tool.snapshot(target.pid, "-d", "0.2"), "mutex")
    assert lock["wait_p50_s"] > 0
    names = ("wait_p50_s", "wait_p99_s", "hold_p50_s", "hold_p99_s")
    assert [lock["interval"][name] for name in names] == [None] * 4
