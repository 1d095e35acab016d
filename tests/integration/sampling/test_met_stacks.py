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


def test_waits_for_a_lock_that_are_over_are_not_idle(
    start_unprepared: StartTarget, need: Callable[[str], object]
) -> None:
    """The words of a Rust Mutex say nothing: only the functions of a wait do."""
    need("rustc")
    target = start_unprepared("rust_wakers", "awaited")
    with closing(attach(target.pid)) as source:
        source.scan(resolve=True)
        target.go_on("")
        locks: list[Lock] = []

        def is_met() -> bool:
            snapshot = source.scan(resolve=True)
            locks[:] = [lock for lock in snapshot.locks if lock.type == "Rust Mutex"]
            return any(lock.wait_stacks and not lock.waiters for lock in locks)

        until(is_met, "a wait that is over")
        over = next(lock for lock in locks if lock.wait_stacks and not lock.waiters)
        with_stacks_s = sum(entry.wait_s for entry in over.wait_stacks)
        assert with_stacks_s > 0.0
        assert over.idle_s <= over.wait_s - with_stacks_s + 1e-6
        assert not over.idle
