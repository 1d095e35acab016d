"""A thread is as free as without the library: cancelled, interrupted, on a small stack, ending."""

from __future__ import annotations

import pytest
from support import tool
from support.same import AsBare
from support.targets import StartTarget


@pytest.mark.parametrize("used", ["1", "6000"])
def test_on_the_smallest_stack(used: str, as_bare: AsBare) -> None:
    as_bare("smallstack", used)


@pytest.mark.parametrize("kind", ["deferred", "asynchronous"])
def test_cancelled_in_each_wait(kind: str, as_bare: AsBare) -> None:
    as_bare("cancels", kind, scan=True)


def test_a_handler_posts_wherever_it_interrupts(as_bare: AsBare) -> None:
    as_bare("handlerposts", scan=True)


def test_a_handler_waits_wherever_it_interrupts(as_bare: AsBare) -> None:
    as_bare("handlerwaits", scan=True)


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_destructors_of_thread_specific_data(
    level: str | None, start_bare: StartTarget, start_target: StartTarget
) -> None:
    target = start_target("exiting", level=level) if level else start_bare("exiting")
    truth = target.truth()
    target.expect("ok")
    if level:
        lock = tool.lock_named(tool.snapshot(target.pid), "g_at_exit")
        # Each destructor takes it, and again after its condition wait; each thread of theirs once.
        assert lock["acquisitions"] == 2 * truth["destroyed"] + truth["joined"]
        assert (lock["holders"], lock["waiters"]) == ([], [])
    assert target.finish() == (0, [])


def test_destructors_of_thread_locals_and_exceptions_in_waits(as_bare: AsBare) -> None:
    as_bare("threadlocals")
