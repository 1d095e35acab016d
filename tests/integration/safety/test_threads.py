"""Cancelled, interrupted and ending threads, and small stacks, work as without the library."""

from __future__ import annotations

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import StartTarget


@pytest.mark.parametrize("used", ["1", "6000"])
def test_the_smallest_stack_is_enough(
    used: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("smallest_stack", used)


@pytest.mark.parametrize("kind", ["deferred", "asynchronous"])
def test_a_thread_can_be_cancelled_in_each_wait(
    kind: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("cancel_each_wait", kind, scan=True)


def test_a_signal_handler_may_post_anywhere(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("handler_posts_semaphores", scan=True)


def test_a_signal_handler_and_a_child_may_wake_anywhere(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("futex_wakes_in_handlers")


def test_a_signal_handler_may_wait_anywhere(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("handler_waits_for_lock", scan=True)


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_locks_in_destructors_of_thread_specific_data_are_counted(
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
        # Each destructor takes the lock twice: also after its condition wait. Each thread that a
        # destructor starts takes the lock once.
        assert lock["acquisitions"] == 2 * truth["destroyed"] + truth["joined"]
        assert (lock["holders"], lock["waiters"]) == ([], [])
    assert target.finish() == (0, [])


def test_destructors_of_thread_locals_and_exceptions_in_waits_have_the_same_results(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("thread_local_destructors")
