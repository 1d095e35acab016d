"""Samples show that threads queue for a lock; one below a threshold shows nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.sampled_queues import QueueCounts, QueueSamples
from locktop.collector.model import Frame, PatternName, Snapshot, ThreadState
from locktop.collector.render.words.patterns import evidence

SCANS = 4
FRAME = records.frame("store::append", "store.rs", 6)


def snapshot(*, idle: bool = False) -> Snapshot:
    lock = replace(records.lock(1, "g_lock"), waiters=(11, 12), idle=idle)
    threads = tuple(records.thread(tid, "w", ThreadState.WAITING) for tid in (11, 12))
    return records.snapshot(threads, (lock,))


def queue(*locations: Frame, **changes: Any) -> QueueSamples:
    """Four scans of ten samples each; a thread waits in nine of the ten."""
    samples = QueueSamples()
    for number in range(SCANS):
        counts = replace(QueueCounts(waited=9, at_once=2, waits=3), **changes)
        samples.add(10, {1: counts}, dict.fromkeys([1], locations[number]) if locations else {})
    return samples


def test_a_queue_is_said_in_words_of_samples() -> None:
    (finding,) = queue().find(snapshot())
    assert finding.name is PatternName.CONTENDED
    assert finding.tids == (11, 12)
    assert evidence(finding) == "in 36 of 40 samples threads waited, up to 2 at once"


def test_the_most_common_location_of_the_holder_is_said() -> None:
    other = records.frame("store::flush", "store.rs", 90)
    (finding,) = queue(FRAME, other, FRAME, FRAME).find(snapshot())
    words = "; in 3 of 4 scans its holder was at store::append store.rs:6"
    assert evidence(finding).endswith(words)
    (finding,) = queue(FRAME, other, FRAME, other).find(snapshot())
    assert "holder" not in evidence(finding), "two scans are chance"


@pytest.mark.parametrize("changes", [{"waited": 8}, {"at_once": 1}, {"waits": 2}])
def test_a_near_miss_is_no_queue(changes: dict[str, int]) -> None:
    assert not list(queue(**changes).find(snapshot()))


def test_waits_for_work_are_no_queue() -> None:
    assert not list(queue().find(snapshot(idle=True)))


def test_few_samples_prove_nothing() -> None:
    samples = QueueSamples()
    samples.add(39, {1: QueueCounts(waited=39, at_once=7, waits=39)}, {})
    assert not list(samples.find(snapshot()))


def test_scans_of_long_ago_do_not_count() -> None:
    samples = queue()
    for _ in range(40):
        samples.add(5, {}, {})
    assert not list(samples.find(snapshot()))
