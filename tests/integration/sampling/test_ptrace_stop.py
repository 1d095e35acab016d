"""A thread that is stopped for a moment goes on as if nothing had been."""

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
from locktop.collector.unwind import ptrace_stop
from locktop.collector.unwind.arch import architecture
from locktop.collector.unwind.cursor import Unwound
from locktop.collector.unwind.unwinder import Unwinder

OPTIMISED = ("-O2", "-fno-omit-frame-pointer")


def status(pid: int, tid: int, field: str) -> str:
    for line in Path(f"/proc/{pid}/task/{tid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split()[1]
    raise AssertionError(field)


def goes_on(pid: int, tid: int, states: str = "SR") -> None:
    """Nobody traces it, and it comes to a state of those that a thread has by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while status(pid, tid, "TracerPid") != "0" or status(pid, tid, "State") not in states:
        assert time.monotonic() < deadline, "it stands still"
        time.sleep(0.001)


def stopped(unwinder: Unwinder, tid: int) -> Unwound:
    """The stack of one that can be stopped; where the machine is busy not at the first attempt."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := unwinder.stopped(tid)) is None:
        assert time.monotonic() < deadline, "it never stops in time"
    return found


def call(pid: int, tid: int) -> syscalls.SystemCall | None:
    return syscalls.parse(procfs.thread_syscall(pid, tid))


def test_sleepers_stay_in_their_calls(start_unprepared: StartTarget) -> None:
    """What they do not do anyway is to return: each would be in another call then."""
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tids = target.truth()
    unwinder = Unwinder(target.pid)
    for way, tid in tids.items():
        before, asleep = call(target.pid, tid), unwinder.blocked(tid)
        found = unwinder.stopped(tid) if way == "polls_many" else stopped(unwinder, tid)
        goes_on(target.pid, tid, "S")
        now = call(target.pid, tid)
        assert before is not None
        assert now is not None
        restarted = syscalls.name(now.number) == "restart_syscall"
        assert restarted or now == before, way
        if found is None:
            continue  # epoll_wait would end with EINTR
        assert way != "polls_many"
        assert asleep is not None
        least = min(len(found.addresses), len(asleep.addresses))
        assert found.addresses[:least] == asleep.addresses[:least]
        assert found.complete or way == "on_another_stack", (way, found)


def test_one_that_runs(start_unprepared: StartTarget) -> None:
    target = start_unprepared("disturbed_by_stops", "spins", flags=OPTIMISED)
    truth = target.truth()
    unwinder = Unwinder(target.pid)
    found = [stopped(unwinder, truth["tid"]) for _ in range(50)]
    for stack in found:
        assert stack.complete, stack
        ends = [n for n, one in enumerate(stack.addresses) if one == truth["called_from"]]
        assert len(ends) == 1, "the function that spins was called from there"
    goes_on(target.pid, truth["tid"])
    vdso = [m for m in procfs.maps(target.pid).splitlines() if m.endswith(b"[vdso]")]
    begin, end = (int(part, 16) for part in vdso[0].split()[0].split(b"-"))
    assert any(begin <= stack.addresses[0] < end for stack in found), "it reads the clock"


def test_one_that_the_kernel_holds_fast(start_unprepared: StartTarget) -> None:
    """It cannot be stopped, and is not stopped later either."""
    target = start_unprepared("disturbed_by_stops", "forks")
    truth = target.truth()
    began = time.monotonic()
    assert status(target.pid, truth["tid"], "State") == "D"
    assert Unwinder(target.pid).stopped(truth["tid"]) is None
    assert time.monotonic() - began < PATIENCE_S
    goes_on(target.pid, truth["tid"], "D")
    os.kill(truth["child"], signal.SIGKILL)
    target.expect("ok")


def test_if_we_are_killed_meanwhile(start_unprepared: StartTarget) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    before = call(target.pid, tid)
    program = (
        "import os, signal\n"
        "from locktop.collector.linux import process_memory as memory\n"
        "from locktop.collector.unwind import ptrace_stop\n"
        "from locktop.collector.unwind.arch import architecture\n"
        "memory.read = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"ptrace_stop.copy({target.pid}, {tid}, architecture())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    goes_on(target.pid, tid, "S")
    assert call(target.pid, tid) == before


def test_if_something_fails_meanwhile(
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
    goes_on(target.pid, tid, "S")


def test_one_that_is_stopped_stays_so(start_unprepared: StartTarget) -> None:
    """By a signal, before we came."""
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    target.process.send_signal(signal.SIGSTOP)
    goes_on(target.pid, tid, "T")
    found = Unwinder(target.pid).stopped(tid)
    assert found is None or found.complete
    goes_on(target.pid, tid, "T")
    target.process.send_signal(signal.SIGCONT)
    goes_on(target.pid, tid, "S")


def test_signals_are_not_lost(start_unprepared: StartTarget) -> None:
    """Each comes to its handler, also one that arrives with our stop."""
    target = start_unprepared("disturbed_by_stops", "counts")
    tid = target.truth()["tid"]
    unwinder = Unwinder(target.pid)
    for _ in range(200):
        os.kill(target.pid, signal.SIGRTMIN)
        unwinder.stopped(tid)
    goes_on(target.pid, tid)
    os.kill(target.pid, signal.SIGTERM)
    assert target.truth()["signals"] == 200


def test_who_may_not_is_refused(start_unprepared: StartTarget) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=OPTIMISED)
    tid = target.truth()["waits"]
    found = architecture()
    assert found is not None
    with Target([sys.executable, "-c", TRACER, str(tid)]) as other:
        other.expect("traced")
        assert ptrace_stop.copy(target.pid, tid, found) is None, "somebody else traces it"
    goes_on(target.pid, tid, "S")
    assert ptrace_stop.copy(target.pid, 1 << 30, found) is None


TRACER = """\
import ctypes, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) == 0
print("traced", flush=True)
input()
"""
