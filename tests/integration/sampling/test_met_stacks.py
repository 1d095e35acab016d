"""The stacks of waits that are over, of a process without the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.profiles import call_tree
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source


@pytest.fixture
def waiting(start_unprepared: StartTarget) -> Iterator[tuple[Source, Target]]:
    """A source whose last scan met a wait for g_cache_lock, which lasts until the next line."""
    target = start_unprepared("long_wait_on_request")
    target.expect("ready")
    target.go_on("hold")
    with closing(attach(target.pid)) as source:
        scan_until(source, lambda lock: bool(lock.wait_stacks), "a stack of the wait")
        yield source, target


def scan_until(source: Source, reached: Callable[[Lock], bool], what: str) -> Snapshot:
    """Scan until ``reached`` is true of g_cache_lock, and return the snapshot."""
    last: list[Snapshot] = []

    def is_reached() -> bool:
        last[:] = [source.scan(resolve=True)]
        return any(reached(lock) for lock in last[0].locks if lock.name == "g_cache_lock")

    until(is_reached, what)
    return last[0]


def test_a_wait_that_is_over_keeps_its_stack(waiting: tuple[Source, Target]) -> None:
    source, target = waiting
    target.go_on("")
    target.line()
    snapshot = scan_until(source, lambda lock: not lock.waiters, "the end of the wait")
    lock = next(lock for lock in snapshot.locks if lock.name == "g_cache_lock")
    (waited,) = lock.wait_stacks
    assert snapshot.stacks[waited.stack][0].function == "cache_get"
    assert (waited.count, waited.idle) == (1, False)
    assert 0 < waited.wait_s <= lock.wait_s
    root = call_tree.tree(call_tree.branches(snapshot, call_tree.WAIT))
    assert "cache_get" in {step.name for step in call_tree.steps(root)}


def test_two_waits_with_one_stack_add_up(waiting: tuple[Source, Target]) -> None:
    source, target = waiting
    target.go_on("")
    target.line()
    target.go_on("hold")
    snapshot = scan_until(source, lambda lock: bool(lock.waiters), "the second wait")
    lock = next(lock for lock in snapshot.locks if lock.name == "g_cache_lock")
    (waited,) = lock.wait_stacks
    assert waited.count == 2
    assert waited.wait_s == pytest.approx(lock.wait_s)
    target.go_on("")
    target.line()
