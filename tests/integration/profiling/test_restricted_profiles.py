"""Profiles of programs that restrict or copy themselves, and of very many threads."""

from __future__ import annotations

import pytest
from support.targets import StartTarget

TIMER, TASK_CLOCK = 0, 1
_NOT_PERMITTED = '"code": -14'


@pytest.mark.parametrize("source", [TIMER, TASK_CLOCK])
@pytest.mark.parametrize("part", ["closed", "confined", "crowd"])
def test_the_profile_goes_on_and_the_program_too(
    part: str, source: int, start_target: StartTarget
) -> None:
    status, lines = start_target("profiled_restricted", part, str(source)).finish()
    if _NOT_PERMITTED in lines[0]:
        pytest.skip(lines[0])
    assert (status, lines) == (0, ["ok"])


@pytest.mark.parametrize("level", ["dormant", "contended"])
@pytest.mark.parametrize(
    "part", [("clone", str(TIMER)), ("clone", str(TASK_CLOCK)), ("handlers",)], ids="-".join
)
def test_cloned_children_and_signal_handlers_may_use_profiles(
    part: tuple[str, ...], level: str, start_target: StartTarget
) -> None:
    status, lines = start_target("profiled_extremes", *part, level=level).finish()
    if _NOT_PERMITTED in lines[0]:
        pytest.skip(lines[0])
    assert (status, lines) == (0, ["ok"])


def test_a_start_without_a_timer_has_a_code(start_target: StartTarget) -> None:
    assert start_target("profiled_restricted", "timer").finish() == (0, ["ok"])
