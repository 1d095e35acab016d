"""A thread is as free as without the library: cancelled, interrupted, on a small stack, ending."""

from __future__ import annotations

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import StartTarget


@pytest.mark.parametrize("used", ["1", "6000"])
def test_on_the_smallest_stack(used: str, compare_with_unprepared: CompareWithUnprepared) -> None:
    compare_with_unprepared("smallest_stack", used)


@pytest.mark.parametrize("kind", ["deferred", "asynchronous"])
def test_cancelled_in_each_wait(kind: str, compare_with_unprepared: CompareWithUnprepared) -> None:
    compare_with_unprepared("cancel_each_wait", kind, scan=True)


def test_a_handler_posts_wherever_it_interrupts(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("handler_posts_semaphores", scan=True)


def test_a_handler_waits_wherever_it_interrupts(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("handler_waits_for_lock", scan=True)


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_destructors_of_thread_specific_data(
    level: str | None, start_unprepared: StartTarget, start_target: StartTarget
) -> None:
    target = (
        start_target("thread_exit_destructors", level=level)
        if level
        else start_unprepared("thread_exit_destructors")
    )
    truth = target.truth()
    target.expect("ok")
    if level:
        lock = tool.lock_named(tool.snapshot(target.pid), "g_at_exit")
        # Each destructor takes it, and again after its condition wait; each thread of theirs once.
        assert lock["acquisitions"] == 2 * truth["destroyed"] + truth["joined"]
        assert (lock["holders"], lock["waiters"]) == ([], [])
    assert target.finish() == (0, [])


def test_destructors_of_thread_locals_and_exceptions_in_waits(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("thread_local_destructors")
