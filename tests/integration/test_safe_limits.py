"""A program that lacks something, or confines itself, runs on; the tool says what is missing."""

from __future__ import annotations

import pytest
from support import tool
from support.same import AsBare
from support.targets import StartTarget


@pytest.mark.parametrize("how", ["prctl", "seccomp", "raw", "strict", "refused"])
def test_a_program_that_confines_itself(how: str, as_bare: AsBare) -> None:
    as_bare("sandboxed", how)


def test_figures_of_a_program_that_confined_itself(start_target: StartTarget) -> None:
    target = start_target("sandboxed", "prctl")
    target.expect("ok")
    document = tool.snapshot(target.pid)
    assert any("confined itself" in note for note in document["notes"])
    lock = tool.lock_named(document, "g_confined")
    assert (lock["acquisitions"], lock["contended"], lock["holders"]) == (500, 0, [])
    assert target.finish() == (0, [])
