"""Source.waits() returns the same waits as a scan, without a scan."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import pairwise

import pytest
from msgspec.structs import replace
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.model import Kind, PlainHistogram, Snapshot, Thread
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import OngoingWait


def scanned(snapshot: Snapshot) -> dict[int, tuple[int, Kind, int, bool]]:
    return {
        thread.tid: (wait.lock, wait.kind, wait.seq, bool(thread.holds))
        for thread in snapshot.threads
        if (wait := thread.waiting_for)
    }


def polled(waits: dict[int, OngoingWait]) -> dict[int, tuple[int, Kind, int, bool]]:
    return {tid: (one.lock, one.kind, one.seq, one.holds) for tid, one in waits.items()}


def begun(start_target: StartTarget, name: str, arguments: tuple[str, ...]) -> Target:
    target = start_target(name, *arguments)
    target.expect("ready")
    if name == "ring_of_three":
        target.go_on()
        target.truth()
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while not source.scan().deadlocks:  # from then on, all waits last
                assert time.monotonic() < deadline
    return target


@pytest.mark.parametrize(("name", "arguments"), [("six_pools", ("5",)), ("ring_of_three", ())])
def test_the_polled_waits_are_those_of_a_scan(
    name: str, arguments: tuple[str, ...], start_target: StartTarget
) -> None:
    target = begun(start_target, name, arguments)
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while True:  # until nothing changed between the two scans; from then on, all waits last
            assert time.monotonic() < deadline
            before = scanned(source.scan(resolve=True))
            seen = dict(source.waits() or {})
            after = source.scan()
            if before == scanned(after) and len(before) == (30 if arguments else 3):
                break
        assert polled(seen) == before
        idle = {one.tid: one.waiting_for.idle for one in after.threads if one.waiting_for}
        idle_cache = {tid: one.idle for tid, one in seen.items()}
        assert idle_cache == (idle if name == "six_pools" else dict.fromkeys(idle)), (
            "waits() knows the idle rules but no deadlocks"
        )
        duration_s = {
            one.tid: one.waiting_for.duration_s for one in after.threads if one.waiting_for
        }
        assert all(0 < one.duration_s <= duration_s[tid] for tid, one in seen.items())
        target.kill()
        target.process.wait()
        assert source.waits() is None


def without_times(snapshot: Snapshot) -> dict[int, Thread]:
    return {
        thread.tid: replace(
            thread,
            waiting_for=replace(wait, duration_s=0.0) if wait else None,
            now=None,  # each source knows the duration of a call from its own scans
            wait_s=dict.fromkeys(thread.wait_s, 0.0),
            cpu_s=0.0,
            cpu_share=0.0,
            wait_share=round(thread.wait_share, 3),
            idle_share=round(thread.idle_share, 3),
            time=None,
            # Each source measures the rate of the library's clock for itself.
            wait_histogram=(
                PlainHistogram(lengths.buckets, lengths.counts, hz=1.0) if lengths else None
            ),
            holds=tuple(replace(held, duration_s=None) for held in thread.holds),
        )
        for thread in snapshot.threads
        for wait, lengths in [(thread.waiting_for, thread.wait_histogram)]
    }


@pytest.mark.parametrize(("name", "arguments"), [("six_pools", ("5",)), ("ring_of_three", ())])
def test_a_later_scan_of_sleeping_threads_is_like_the_first_scan_of_another_source(
    name: str, arguments: tuple[str, ...], start_target: StartTarget
) -> None:
    """Only times differ. Each thread sleeps for the whole time."""
    target = begun(start_target, name, arguments)
    with closing(attach(target.pid)) as source, closing(attach(target.pid)) as other:
        source.scan()
        seen = [source.scan(resolve=True) for _ in range(3)]
        other.scan()
        fresh = other.scan(resolve=True)
        last = source.scan(resolve=True)
    assert without_times(last) == without_times(fresh)
    for before, after in pairwise(seen):
        for then, now in zip(before.threads, after.threads, strict=True):
            if now.waiting_for is None or then.waiting_for is None:
                continue
            kind = now.waiting_for.kind
            grown = now.waiting_for.duration_s - then.waiting_for.duration_s
            assert grown > 0
            assert now.wait_s[kind] - then.wait_s[kind] == pytest.approx(grown, rel=1e-4)
            # Each scan improves the measured rate of the library's clock, from 1e-5 at first.
            assert now.wait_share + now.idle_share == pytest.approx(1.0, abs=1e-4)
            assert now.time is not None
            assert now.time.contended + now.time.idle == pytest.approx(1.0, abs=1e-4)
