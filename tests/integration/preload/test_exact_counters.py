"""With 200 threads, 1,000 locks and constant contention, every counter is exact."""

from __future__ import annotations

from typing import Any

from support import tool
from support.targets import StartTarget, Target

#: The contended acquisitions after which the counters are compared.
MIN_CONTENDED = 10_000


def stopped_after_load(target: Target) -> dict[str, Any]:
    """Let the threads contend until rings have overflowed; stop them, and return the truth."""
    target.expect("ready")

    def is_enough(document: dict[str, Any]) -> bool:
        return contended_mutexes(document) > MIN_CONTENDED and bool(document["lost_events"])

    during = tool.scan_until(target.pid, is_enough, "contention that overflows the rings")
    assert sum(thread["alive"] for thread in during["threads"]) == 201
    target.go_on()
    return target.truth()


def assert_locks_exact(document: dict[str, Any], truth: dict[str, Any]) -> None:
    seen = {lock["address"]: lock["acquisitions"] for lock in document["locks"]}
    # The list may leave out uncontended locks; the document has their number.
    listed = {address: count for address, count in truth["locks"].items() if address in seen}
    assert {address: seen[address] for address in listed} == listed
    used = sum(count > 0 for count in truth["locks"].values())
    assert used - len(listed) <= document.get("locks_left_out", 0)


def contended_mutexes(document: dict[str, Any]) -> int:
    return sum(lock["contended"] for lock in document["locks"] if lock["kind"] == "mutex")


def assert_histograms_exact(document: dict[str, Any]) -> None:
    """Each wait is in a bucket, or found no room there and is told."""
    for one in (*document["threads"], *document["locks"]):
        histogram = one["wait_histogram"] or {"counts": (), "left_out": one["contended"]}
        assert sum(histogram["counts"]) + histogram["left_out"] == one["contended"]
    buckets = sum(
        sum(lock["wait_histogram"]["counts"])
        for lock in document["locks"]
        if lock["kind"] == "mutex" and lock["wait_histogram"]
    )
    # The room for buckets is bounded: the longer the load lasts, the more waits are left out.
    assert buckets > MIN_CONTENDED / 2


def test_every_counter_is_exact(start_target: StartTarget) -> None:
    target = start_target("rolling_contention")
    truth = stopped_after_load(target)
    document = tool.snapshot(target.pid)
    assert_locks_exact(document, truth)

    threads = {str(one["tid"]): one for one in document["threads"]}
    counts = {tid: threads[tid]["acquisitions"] for tid in truth["threads"]}
    assert counts == truth["threads"]

    by_lock = contended_mutexes(document)
    by_thread = sum(one["contended"] for one in document["threads"])
    by_stack = sum(
        stack["count"]
        for lock in document["locks"]
        if lock["kind"] == "mutex"
        for stack in lock["wait_stacks"]
    )
    assert by_lock == by_thread == by_stack
    assert by_lock > MIN_CONTENDED
    assert document["lost_events"] > 0, "the library counts the events that it overwrote"
    assert_histograms_exact(document)

    target.go_on()
    target.expect("joined")
    after = tool.snapshot(target.pid)
    assert_locks_exact(after, truth)
    assert contended_mutexes(after) == by_lock, "the counts of ended threads stay"
    assert_histograms_exact(after)
    assert target.finish() == (0, [])
