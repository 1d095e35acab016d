"""Control that leaves the beaten track: coroutines, jumps, small stacks, ends of every sort."""

from __future__ import annotations

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import StartTarget

WAYS = ["coroutines", "migrate", "altstack", "mainexit"]
WAYS += ["exit", "quickexit", "abort", "daemon", "clone"]


@pytest.mark.parametrize("how", WAYS)
def test_ends_and_begins_as_without_the_library(
    how: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("unusual_control_flow", how)


def test_jumps_out_of_critical_sections_and_waits(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("unusual_control_flow", "longjmp", scan=True)


def test_a_process_whose_first_thread_has_ended(start_target: StartTarget) -> None:
    target = start_target("unusual_control_flow", "mainexit")
    target.expect("ok")
    document = tool.snapshot(target.pid)
    assert tool.lock_named(document, "g_across")["acquisitions"] == 2000
    assert target.finish() == (0, [])
