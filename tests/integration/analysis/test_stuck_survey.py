"""The survey of the process picker: how much threads of real processes wait."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from support import tool
from support.eventually import until
from support.pythons import PYTHON
from support.targets import StartTarget, Target, source_of

from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.sources import discover, stuck_survey
from locktop.collector.sources.sampling.glance import glance
from locktop.collector.sources.stuck_survey import StuckThreads, survey_all, survey_with_library


def test_a_deadlock_is_certain_and_its_threads_are_counted(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.go_on()
    tool.scan_until(target.pid, lambda document: bool(document["deadlocks"]), "a deadlock")
    found = survey_with_library(target.pid)
    assert found is not None
    assert (found.waiting, found.deadlock) == (3, "certain")
    assert found.longest_s > 0.0


def test_a_dormant_process_stays_dormant(start_target: StartTarget) -> None:
    target = start_target("ring_of_three", level="dormant")
    assert survey_with_library(target.pid) is None
    assert "dormant" in tool.run("ctl", "-p", target.pid).stdout


def test_a_process_without_the_library_has_no_figures(start_unprepared: StartTarget) -> None:
    assert survey_with_library(start_unprepared("ring_of_three").pid) is None


def sleeps_for_locks(pid: int) -> int:
    """Return how many threads a glance sees waiting for locks."""
    seen = glance(pid)
    return len(seen.for_locks) if seen is not None else 0


def surveyed(pid: int) -> list[StuckThreads]:
    """Return what the steps of the survey learn of a process, in their order."""
    candidates = [candidate for candidate in discover.candidates() if candidate.pid == pid]
    learned = []
    for step in survey_all(candidates):
        time.sleep(step.pause_s)
        if step.stuck is not None:
            learned.append(step.stuck)
    return learned


def test_a_deadlock_without_the_library_is_certain_after_two_glances_and_a_scan(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("ring_of_three")
    target.go_on()
    until(lambda: sleeps_for_locks(target.pid) == 3, "three sleeps for locks")
    first, second, last = surveyed(target.pid)
    assert (first.waiting, first.deadlock) == (3, "")
    assert second.may_be_stuck
    assert second.is_lower_bound
    assert second.deadlock == "", "a glance proves nothing"
    assert last.deadlock == "certain"


def test_threads_that_wait_for_work_are_not_stuck(start_unprepared: StartTarget) -> None:
    target = start_unprepared("ring_of_three")
    (glanced,) = surveyed(target.pid)
    assert (glanced.waiting, glanced.may_be_stuck) == (0, False)


#: A handler of a signal could end the wait of the main thread.
_CROSSED = """
import signal, threading
signal.signal(signal.SIGINT, signal.SIG_IGN)
one, other, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        with second:
            pass
for locks in ((one, other), (other, one)):
    threading.Thread(target=take, args=locks).start()
print("ready", flush=True)
"""
_IDLE = """
import signal, threading
from concurrent.futures import ThreadPoolExecutor
pool, done = ThreadPoolExecutor(2), threading.Event()
list(pool.map(str, range(10)))
signal.signal(signal.SIGTERM, lambda *_: done.set())
print("ready", flush=True)
done.wait()
"""


def all_sleep(pid: int) -> bool:
    """Return whether a glance sees all threads asleep in futex calls."""
    seen = glance(pid)
    return seen is not None and bool(seen.of_all)


@pytest.mark.parametrize(
    ("program", "deadlock"), [(_CROSSED, "certain"), (_IDLE, "")], ids=["crossed", "idle"]
)
def test_a_hung_python_program_is_deadlocked_and_an_idle_one_is_not(
    program: str, deadlock: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            until(lambda: all_sleep(process.pid), "all threads asleep")
            first, *_, last = surveyed(process.pid)
            assert (first.waiting, first.state) == (0, "")
            assert last.deadlock == deadlock
            assert last.may_be_stuck == bool(deadlock)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("way", "state"), [("handler_of_lock", "possible deadlock"), ("handler", "")]
)
def test_a_hang_that_a_signal_handler_might_end_is_possible(
    way: str, state: str, start_unprepared: StartTarget
) -> None:
    target = start_unprepared("hang_near_misses", way)
    target.expect("ready")
    until(lambda: all_sleep(target.pid), "all threads asleep")
    *_, last = surveyed(target.pid)
    assert last.state == state
    assert not state or last.waiting == 3


def test_a_glance_knows_more_than_it_has_watched(start_unprepared: StartTarget) -> None:
    before = time.monotonic()
    target = start_unprepared("ring_of_three")
    target.go_on()
    until(lambda: sleeps_for_locks(target.pid) == 3, "three sleeps for locks")

    def is_known() -> bool:
        began = time.monotonic()
        seen = glance(target.pid, SleepClock())
        assert seen is not None
        assert seen.longest_s <= time.monotonic() - before
        return seen.longest_s > time.monotonic() - began

    until(is_known, "sleeps that are older than the glance")


def test_threads_that_want_a_lock_of_python_are_counted() -> None:
    with Target([PYTHON, source_of("orders_service")]) as service:
        service.expect("ready")
        first, *_, last = surveyed(service.pid)
        assert first.waiting == 0, "a glance does not tell it from a wait for work"
        assert (last.waiting, last.deadlock) == (4, "")
        assert last.may_be_stuck
        assert last.is_lower_bound


def test_the_survey_takes_its_share_of_a_cpu(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stuck_survey, "AT_ONCE_S", 0.0)
    target = start_unprepared("ring_of_three")
    target.go_on()
    until(lambda: sleeps_for_locks(target.pid) == 3, "three sleeps for locks")
    candidates = [each for each in discover.candidates() if each.pid == target.pid]
    pauses_s, began_s = 0.0, time.process_time()
    for step in survey_all(candidates):
        pauses_s += step.pause_s
        time.sleep(step.pause_s)
    assert time.process_time() - began_s < 0.03 * pauses_s


_POOL = """
import threading
from concurrent.futures import ThreadPoolExecutor
pool, barrier = ThreadPoolExecutor(3), threading.Barrier(3)
list(pool.map(lambda _: barrier.wait(), range(3)))
print("ready", flush=True)
threading.Event().wait(100000)
"""


def test_locks_of_python_are_scanned_before_pools() -> None:
    programs = [_POOL, _POOL, _CROSSED, _POOL]
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        for program in programs
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        crossed = processes[programs.index(_CROSSED)].pid
        until(lambda: all_sleep(crossed), "all threads asleep")
        pids = {process.pid for process in processes}
        ends = []
        for step in survey_all([each for each in discover.candidates() if each.pid in pids]):
            time.sleep(step.pause_s)
            if step.is_last:
                ends.append(step)
        assert {step.pid for step in ends} == pids
        assert ends[0].pid == crossed
        assert [step.stuck.deadlock for step in ends if step.stuck] == ["certain", "", "", ""]
    finally:
        for process in processes:
            process.kill()
            process.wait()
