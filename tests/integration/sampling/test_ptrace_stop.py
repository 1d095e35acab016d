"""A thread that the tool stops for a moment continues unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.symbols.unwind import ptrace_stop
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.unwinder import Unwinder

OPTIMISED = ("-O2", "-fno-omit-frame-pointer")


def status(pid: int, tid: int, field: str) -> str:
    for line in Path(f"/proc/{pid}/task/{tid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split()[1]
    raise AssertionError(field)


def wait_until_continued(pid: int, tid: int, states: str = "SR") -> None:
    """Wait until no process traces the thread, and its state is one of ``states``."""
    deadline = time.monotonic() + PATIENCE_S
    while status(pid, tid, "TracerPid") != "0" or status(pid, tid, "State") not in states:
        assert time.monotonic() < deadline, "the thread does not continue"
        time.sleep(0.001)


def stopped(unwinder: Unwinder, tid: int) -> Unwound:
    """Return the stack of a stopped thread. On a busy machine this takes several attempts."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := unwinder.stopped_stack(tid)) is None:
        assert time.monotonic() < deadline, "the thread never stops in time"
    return found


def call(pid: int, tid: int) -> syscalls.SystemCall | None:
    return syscalls.parse(procfs.thread_syscall(pid, tid))


def test_a_sleeping_thread_stays_in_its_system_call(start_unprepared: StartTarget) -> None:
    """No call of this program returns by itself, so a changed call would be an effect."""
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tids = target.truth()
    unwinder = Unwinder(target.pid)
    for way, tid in tids.items():
        before, asleep = call(target.pid, tid), unwinder.blocked_stack(tid)
        found = unwinder.stopped_stack(tid) if way == "polls_many" else stopped(unwinder, tid)
        wait_until_continued(target.pid, tid, "S")
        now = call(target.pid, tid)
        assert before is not None
        assert now is not None
        restarted = syscalls.name(now.number) == "restart_syscall"
        assert restarted or now == before, way
        if found is None:
            continue  # the tool does not stop this thread: epoll_wait would end with EINTR
        assert way != "polls_many"
        assert asleep is not None
        least = min(len(found.addresses), len(asleep.addresses))
        assert found.addresses[:least] == asleep.addresses[:least]
        assert found.complete or way == "on_another_stack", (way, found)


def test_a_running_thread_has_a_whole_stack_and_continues(start_unprepared: StartTarget) -> None:
    target = start_unprepared("disturbed_by_stops", "spins", flags=OPTIMISED)
    truth = target.truth()
    unwinder = Unwinder(target.pid)
    found = [stopped(unwinder, truth["tid"]) for _ in range(50)]
    for stack in found:
        assert stack.complete, stack
        ends = [n for n, one in enumerate(stack.addresses) if one == truth["called_from"]]
        assert len(ends) == 1, "the stack has the caller of the spinning function"
    wait_until_continued(target.pid, truth["tid"])
    vdso = [m for m in procfs.maps(target.pid).splitlines() if m.endswith(b"[vdso]")]
    begin, end = (int(part, 16) for part in vdso[0].split()[0].split(b"-"))
    assert any(begin <= stack.addresses[0] < end for stack in found), "the thread reads the clock"


def test_a_thread_in_an_uninterruptible_call_is_not_stopped(start_unprepared: StartTarget) -> None:
    """The thread is not stopped later either."""
    target = start_unprepared("disturbed_by_stops", "forks")
    truth = target.truth()
    began = time.monotonic()
    assert status(target.pid, truth["tid"], "State") == "D"
    assert Unwinder(target.pid).stopped_stack(truth["tid"]) is None
    assert time.monotonic() - began < PATIENCE_S
    wait_until_continued(target.pid, truth["tid"], "D")
    os.kill(truth["child"], signal.SIGKILL)
    target.expect("ok")


def test_a_thread_continues_if_the_tool_is_killed_during_the_stop(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    before = call(target.pid, tid)
    program = (
        "import os, signal\n"
        "from locktop.collector.linux import process_memory as memory\n"
        "from locktop.collector.symbols.unwind import ptrace_stop\n"
        "from locktop.collector.symbols.unwind.arch import architecture\n"
        "memory.read = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "while True:  # a stop that comes late on a busy host is given up\n"
        f"    ptrace_stop.copy({target.pid}, {tid}, architecture())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    wait_until_continued(target.pid, tid, "S")
    assert call(target.pid, tid) == before


def test_a_thread_continues_if_the_tool_fails_during_the_stop(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    found = architecture()
    assert found is not None

    def fail(*_: object, **__: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(process_memory, "read", fail)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    assert ptrace_stop.copy(target.pid, tid, found) is None
    wait_until_continued(target.pid, tid, "S")


def test_a_thread_that_a_signal_stopped_stays_stopped(start_unprepared: StartTarget) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    target.process.send_signal(signal.SIGSTOP)
    wait_until_continued(target.pid, tid, "T")
    found = Unwinder(target.pid).stopped_stack(tid)
    assert found is None or found.complete
    wait_until_continued(target.pid, tid, "T")
    target.process.send_signal(signal.SIGCONT)
    wait_until_continued(target.pid, tid, "S")


def test_each_signal_reaches_its_handler(start_unprepared: StartTarget) -> None:
    """A signal that arrives during a stop reaches its handler too."""
    target = start_unprepared("disturbed_by_stops", "counts")
    tid = target.truth()["tid"]
    unwinder = Unwinder(target.pid)
    for _ in range(200):
        os.kill(target.pid, signal.SIGRTMIN)
        unwinder.stopped_stack(tid)
    wait_until_continued(target.pid, tid)
    os.kill(target.pid, signal.SIGTERM)
    assert target.truth()["signals"] == 200


def test_a_thread_with_another_tracer_is_not_stopped(start_unprepared: StartTarget) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    found = architecture()
    assert found is not None
    with Target([sys.executable, "-c", TRACER, str(tid)]) as other:
        other.expect("traced")
        assert ptrace_stop.copy(target.pid, tid, found) is None, "another process traces the thread"
    wait_until_continued(target.pid, tid, "S")
    assert ptrace_stop.copy(target.pid, 1 << 30, found) is None


TRACER = """\
import ctypes, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) == 0
print("traced", flush=True)
input()
"""
