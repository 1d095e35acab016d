"""Since when real threads sleep: never earlier than they fell asleep."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from support.eventually import until

from locktop.collector.linux import procfs, sleep_clock
from locktop.collector.linux.sleep_clock import SleepClock

pytestmark = pytest.mark.skipif(
    not SleepClock().is_available or not os.path.exists("/proc/thread-self/sched"),
    reason="this kernel does not tell since when threads sleep",
)


def is_asleep(pid: int) -> bool:
    """Return whether the kernel shows the process asleep in its read."""
    return procfs.stat(pid).state == "S" and b"pipe_read" in procfs.read(f"/proc/{pid}/wchan")


#: From Linux 6.12 on a sleeping thread may move, so that one clock alone is not right there.
_VERSIONS = [(6, 12)] if sleep_clock.kernel_version() >= (6, 12) else [(5, 15), (6, 12)]


@pytest.mark.parametrize("version", _VERSIONS, ids=str)
def test_a_sleep_has_not_begun_before_its_program(
    version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleep_clock, "kernel_version", lambda: version)
    before, allowed = time.monotonic(), os.sched_getaffinity(0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        try:
            until(lambda: is_asleep(process.pid), "the read of cat")
            runs = procfs.thread_runs(process.pid, process.pid)

            def lasts() -> bool:
                """Return whether a new clock knows more than it has watched itself."""
                began = time.monotonic()
                since = SleepClock().asleep_since(process.pid, process.pid)
                assert since is None or before < since <= time.monotonic()
                return since is not None and since < began

            until(lasts, "a sleep that is older than its clock")
            assert procfs.thread_runs(process.pid, process.pid) == runs, "nobody woke it"
        finally:
            process.communicate()
    assert os.sched_getaffinity(0) == allowed


def test_a_sleep_begins_anew_after_each_run() -> None:
    clock = SleepClock()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            woken_at = time.monotonic()
            process.stdin.write(b"line\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"line\n"
            until(lambda: is_asleep(process.pid), "the next read of cat")
            until(lambda: clock.asleep_since(process.pid, process.pid) is not None, "its begin")
            since = clock.asleep_since(process.pid, process.pid)
            assert since is not None
            assert since > woken_at
        finally:
            process.communicate()


def test_an_ended_thread_has_no_sleep() -> None:
    clock = SleepClock()
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert clock.asleep_since(process.pid, process.pid) is None
    assert clock.is_available


def test_a_kernel_without_the_file_is_not_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> bytes:
        raise FileNotFoundError(path)

    clock = SleepClock()
    monkeypatch.setattr(procfs, "read", refuse)
    assert clock.asleep_since(os.getpid(), os.getpid()) is None
    assert not clock.is_available


def test_a_cpu_that_locktop_may_not_use_tells_nothing() -> None:
    allowed = os.sched_getaffinity(0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        try:
            until(lambda: is_asleep(process.pid), "the read of cat")
            stat = procfs.read(f"/proc/{process.pid}/stat")
            others = allowed - {int(stat[stat.rindex(b")") + 2 :].split()[36])}
            if not others:
                pytest.skip("this machine has one CPU")
            os.sched_setaffinity(0, others)
            clock = SleepClock()
            assert clock.asleep_since(process.pid, process.pid) is None
            assert clock.is_available
        finally:
            os.sched_setaffinity(0, allowed)
            process.communicate()
