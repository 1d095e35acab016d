"""The level of a process during and after `locktop whatif`."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import tool
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.linux.target import find_process
from locktop.collector.shm.layout import Control
from locktop.collector.sources import discover, levels
from locktop.collector.sources.attach import attach

CROWD = "16:s2000,L40,s1000,U"
#: Longer than any test.
_FOR_LONG = ("-d", "600")


def page_of(target: Target) -> Control:
    memory = discover.open_memory(find_process(target.pid))
    try:
        return memory.control()
    finally:
        memory.close()


def level(target: Target) -> str:
    return levels.read_level(target.pid).level


def crowd(start_target: StartTarget, at: str = "contended") -> Target:
    target = start_target("lock_rounds", CROWD, level=at, flags=("-lm",))
    target.expect("ready")
    return target


@contextmanager
def recorded_for_long(target: Target, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Run `locktop whatif` for longer than the test, from the time when it records all."""
    process = tool.start(*(command or ("whatif",)), "-p", target.pid, *_FOR_LONG)
    try:
        until(lambda: level(target) == "all" or process.poll() is not None, "all is recorded")
        yield process
    finally:
        process.kill()
        process.communicate()


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit status and the line on the standard error."""
    output, errors = process.communicate(timeout=tool.PATIENCE_S)
    assert output == ""
    assert errors.count("\n") <= 1, errors
    return process.returncode, errors.strip()


@pytest.mark.parametrize("wanted", ["all", "contended"])
def test_a_level_that_a_user_sets_meanwhile_stays(start_target: StartTarget, wanted: str) -> None:
    target = crowd(start_target, "counting")
    with recorded_for_long(target) as process:
        levels.set_level(target.pid, wanted)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=tool.PATIENCE_S)
        page = page_of(target)
        assert (level(target), page.claim_pid) == (wanted, 0)
        assert levels.NAMES[page.base_level] == wanted


def test_a_lower_level_meanwhile_ends_the_recording(start_target: StartTarget) -> None:
    target = crowd(start_target)
    with recorded_for_long(target) as process:
        levels.set_level(target.pid, "counting")
        assert end_of(process) == (
            2,
            f"locktop: the level of process {target.pid} was changed meanwhile; it is counting now:"
            " run the command again",
        )
    assert level(target) == "counting"


def test_only_one_command_records_a_process(start_target: StartTarget) -> None:
    target = crowd(start_target)
    with recorded_for_long(target) as first:
        status, said = end_of(tool.start("whatif", "-p", target.pid, "-d", "1", "--cpus", "4"))
        assert status == 2
        assert said == (
            f"locktop: another locktop (pid {first.pid}) records all holds of process"
            f" {target.pid}; wait for its end"
        )
        assert level(target) == "all"
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=tool.PATIENCE_S)
    assert level(target) == "contended"


def test_a_process_at_the_level_all_is_recorded_by_several(start_target: StartTarget) -> None:
    target = crowd(start_target, "all")
    with recorded_for_long(target):
        done = tool.run("whatif", "-p", target.pid, "-d", "1", "--cpus", "4")
    assert done.returncode in (0, 3), done.stderr
    assert "the level is back" not in done.stdout
    assert level(target) == "all"


def test_the_page_says_that_the_level_is_back(start_target: StartTarget) -> None:
    target = crowd(start_target, "counting")
    done = tool.run("whatif", "-p", target.pid, "-d", "1", "--cpus", "4")
    assert done.returncode in (0, 3), done.stderr
    assert re.search(r"^cost .*; the level is back$", done.stdout, re.MULTILINE)
    page = page_of(target)
    assert (level(target), page.claim_pid) == ("counting", 0)


@pytest.mark.parametrize("command", [("whatif",), ("snapshot", "--whatif")])
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_an_interrupted_command_sets_the_level_back_and_says_so(
    start_target: StartTarget, command: tuple[str, ...], number: int, status: int
) -> None:
    target = crowd(start_target)
    with recorded_for_long(target, *command) as process:
        process.send_signal(number)
        assert end_of(process) == (
            status,
            f"locktop: interrupted; the level of process {target.pid} is contended as before",
        )
        page = page_of(target)
    assert (levels.LEVELS[page.mode & 0xFF].name, page.claim_pid) == ("contended", 0)


def test_a_process_that_ends_meanwhile_ends_the_command(start_target: StartTarget) -> None:
    target = crowd(start_target)
    with recorded_for_long(target) as process:
        target.process.kill()  # nobody waits for it yet: the kernel keeps its number
        assert end_of(process) == (
            2,
            f"locktop: process {target.pid} ended while its locks were recorded",
        )


def test_a_dormant_process_stays_awake_for_another_reader(start_target: StartTarget) -> None:
    target = crowd(start_target, "dormant")
    source = attach(target.pid)
    try:
        claim = page_of(target)
        assert level(target) == "contended"
        with recorded_for_long(target) as process:
            process.send_signal(signal.SIGTERM)
            end_of(process)
            page = page_of(target)
            assert (level(target), page.claim_pid) == ("contended", claim.claim_pid)
            assert page.claim_level == claim.claim_level
    finally:
        source.close()
    until(lambda: level(target) == "dormant", "no reader is left")


def test_a_reader_does_not_keep_the_level_of_a_killed_command(start_target: StartTarget) -> None:
    target = crowd(start_target, "dormant")
    source = attach(target.pid)
    try:
        with recorded_for_long(target) as process:
            process.kill()
            until(lambda: level(target) != "all", "the level all lapses")
        until(lambda: level(target) == "contended", "the reader wakes the process again")
    finally:
        source.close()
