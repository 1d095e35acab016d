"""The names of threads of other processes, and what to do about them."""

from __future__ import annotations

import pytest
from unit.builders import records

from locktop.collector.model import ThreadElsewhere
from locktop.collector.render.words import elsewhere

FIRST = ThreadElsewhere(4802, 4802, "convert")
WORKER = ThreadElsewhere(4810, 4802, "convert", "worker")
ANOTHER = ThreadElsewhere(4811, 4802, "convert", "convert")
UNREADABLE = ThreadElsewhere(4810, 4802)
UNKNOWN = ThreadElsewhere(4810)


@pytest.mark.parametrize(
    ("thread", "short", "full"),
    [
        (FIRST, "convert 4802", "convert 4802"),
        (WORKER, "worker of convert 4802", "worker of convert 4802 (thread 4810)"),
        (ANOTHER, "thread 4811 of convert 4802", "thread 4811 of convert 4802"),
        (UNREADABLE, "thread 4810 of another process", "thread 4810 of another process"),
        (UNKNOWN, "a thread of another process", "a thread of another process"),
    ],
)
def test_a_thread_has_the_name_of_its_process(
    thread: ThreadElsewhere, short: str, full: str
) -> None:
    assert (elsewhere.short_name(thread), elsewhere.full_name(thread)) == (short, full)


def test_advice_is_for_a_mutex_that_would_stay_locked() -> None:
    waited = records.lock(1, "g_lock", waiters=(11,))
    robust = ThreadElsewhere(4802, 4802, "convert", is_freed_at_exit=True)
    assert "if convert 4802 dies now" in elsewhere.advice(FIRST, waited)
    assert "dies" not in elsewhere.advice(robust, waited)
    assert "dies" not in elsewhere.advice(FIRST, records.lock(1, "g_lock"))
    assert elsewhere.advice(UNKNOWN, waited) == ""
