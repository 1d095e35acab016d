"""A few of the scenarios of ``make probable`` on the Python of the tests."""

from __future__ import annotations

from contextlib import closing

import pytest
from probable.deadlocks import check
from probable.judge import judge
from probable.programs import Command
from support.pythons import PYTHON
from support.targets import Target, source_of

from locktop.collector.sources.attach import attach

_SCENARIOS = (
    "in_comprehension", "waiter_with_timeout", "lock_of_semaphore", "holder_runs",
    "holder_at_other_lock", "onlookers_in_condition_wait", "gil_of_thread",
    "context_manager_functions_nested", "exit_stack_of_many", "exit_stack_of_function",
    "onlookers_with_context_managers", "onlookers_with_exit_stacks",
)  # fmt: skip
_SCANS = 10


@pytest.fixture(name="command")
def python_holders() -> Command:
    return PYTHON, source_of("python_holders")


def test_the_holder_is_named_and_no_other_thread(command: Command) -> None:
    verdicts = [judge(command, scenario) for scenario in _SCENARIOS]
    assert [verdict.doubts for verdict in verdicts] == [()] * len(verdicts)


@pytest.mark.parametrize("way", ["acquire_beside_onlookers", "beside_released_block"])
def test_no_thread_is_named_rather_than_a_wrong_one(way: str, command: Command) -> None:
    verdict = judge(command, f"apart_{way}")
    assert (verdict.named, verdict.wrong) == (0, 0)


def test_a_healthy_program_has_no_deadlock() -> None:
    with Target([PYTHON, source_of("python_healthy")]) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            for _ in range(_SCANS):
                assert source.scan(resolve=True).deadlocks == ()


@pytest.mark.parametrize("locks", ["of_three", "of_lock_and_rlock", "certain_of_gil_and_mutex"])
def test_a_deadlock_is_certain_only_if_all_locks_have_owners(locks: str, command: Command) -> None:
    result = check(command, f"deadlock_{locks}")
    assert result.is_right, result.text
