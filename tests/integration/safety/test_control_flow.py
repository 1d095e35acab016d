"""Control that leaves the beaten track: coroutines, jumps, small stacks, ends of every sort."""

from __future__ import annotations

import pytest
from support import tool
from support.same import AsBare
from support.targets import StartTarget

WAYS = ["coroutines", "migrate", "altstack", "mainexit"]
WAYS += ["exit", "quickexit", "abort", "daemon", "clone"]


@pytest.mark.parametrize("how", WAYS)
def test_ends_and_begins_as_without_the_library(how: str, as_bare: AsBare) -> None:
    as_bare("wayward", how)


def test_jumps_out_of_critical_sections_and_waits(as_bare: AsBare) -> None:
    as_bare("wayward", "longjmp", scan=True)


def test_a_process_whose_first_thread_has_ended(start_target: StartTarget) -> None:
    target = start_target("wayward", "mainexit")
    target.expect("ok")
    document = tool.snapshot(target.pid)
    assert tool.lock_named(document, "g_across")["acquisitions"] == 2000
    assert target.finish() == (0, [])
