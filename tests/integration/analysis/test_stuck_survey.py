"""The survey of the process picker: how much threads of real processes wait."""

from __future__ import annotations

from support import tool
from support.targets import StartTarget

from locktop.collector.sources.stuck_survey import survey


def test_a_deadlock_is_certain_and_its_threads_are_counted(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.go_on()
    tool.scan_until(target.pid, lambda document: bool(document["deadlocks"]), "a deadlock")
    found = survey(target.pid)
    assert found is not None
    assert (found.waiting, found.deadlock) == (3, "certain")
    assert found.longest_s > 0.0


def test_a_dormant_process_stays_dormant(start_target: StartTarget) -> None:
    target = start_target("ring_of_three", level="dormant")
    assert survey(target.pid) is None
    assert "dormant" in tool.run("ctl", "-p", target.pid).stdout


def test_a_process_without_the_library_has_no_figures(start_unprepared: StartTarget) -> None:
    assert survey(start_unprepared("ring_of_three").pid) is None
