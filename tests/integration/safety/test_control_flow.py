"""Unusual control flow: coroutines, jumps, small stacks, and each way to end."""

from __future__ import annotations

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import StartTarget

WAYS = ["coroutines", "migrate", "altstack", "mainexit"]
WAYS += ["exit", "quickexit", "abort", "daemon", "clone"]


@pytest.mark.parametrize("how", WAYS)
def test_unusual_control_flow_has_the_same_results(
    how: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("unusual_control_flow", how)


def test_jumps_out_of_critical_sections_and_waits_have_the_same_results(
    compare_with_unprepared: CompareWithUnprepared,
) -> None:
    compare_with_unprepared("unusual_control_flow", "longjmp", scan=True)


def test_a_process_without_its_main_thread_is_scanned(start_target: StartTarget) -> None:
    target = start_target("unusual_control_flow", "mainexit")
    target.expect("ok")
    document = tool.snapshot(target.pid)
    assert tool.lock_named(document, "g_across")["acquisitions"] == 2000
    assert target.finish() == (0, [])
