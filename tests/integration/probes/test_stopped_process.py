"""A note says that a process is stopped: its waits grow, and no lock is the cause."""

from __future__ import annotations

import ctypes
import os
import signal

import pytest
from support import tool
from support.targets import StartTarget, Target

_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17


def notes(target: Target) -> list[str]:
    found: list[str] = tool.snapshot(target.pid)["notes"]
    return found


def wait_until_stopped(target: Target) -> None:
    _, status = os.waitpid(target.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def test_a_note_names_the_command_that_continues_a_process_stopped_by_a_signal(
    start_target: StartTarget,
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    assert not any("stopped" in note for note in notes(target))
    os.kill(target.pid, signal.SIGSTOP)
    wait_until_stopped(target)
    assert [f"`kill -CONT {target.pid}`" in note for note in notes(target)] == [True]
    assert tool.snapshot(target.pid)["stopped"]
    os.kill(target.pid, signal.SIGCONT)
    _, status = os.waitpid(target.pid, os.WCONTINUED)
    assert os.WIFCONTINUED(status)
    assert not tool.snapshot(target.pid)["stopped"]
    assert not any("stopped" in note for note in notes(target))


def test_a_note_says_that_a_debugger_stopped_the_process(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    if ptrace(_PTRACE_ATTACH, target.pid, None, None) != 0:
        pytest.skip(f"ptrace is forbidden here: {os.strerror(ctypes.get_errno())}")
    wait_until_stopped(target)
    assert ["debugger" in note for note in notes(target)] == [True]
    assert ptrace(_PTRACE_DETACH, target.pid, None, None) == 0


def test_a_sampled_process_that_is_stopped_says_so(start_unprepared: StartTarget) -> None:
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    os.kill(target.pid, signal.SIGSTOP)
    wait_until_stopped(target)
    assert tool.snapshot(target.pid)["stopped"]
    os.kill(target.pid, signal.SIGCONT)
