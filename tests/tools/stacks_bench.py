"""How long the stack of a thread of another process takes (docs/overhead.md)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.targets import Compiler, Target

from locktop.collector.unwind import ptrace_stop
from locktop.collector.unwind.machine import machine
from locktop.collector.unwind.unwinder import Unwinder

WARM = 100
BUILDS = {
    "without frame pointers": ("-O2", "-fomit-frame-pointer"),
    "with frame pointers": ("-O2", "-fno-omit-frame-pointer"),
}
WAYS = ("twenty", "deep", "reads")
_LOOK = """\
import sys, time
from locktop.collector.unwind.unwinder import Unwinder
began = time.perf_counter()
found = Unwinder(int(sys.argv[1])).blocked(int(sys.argv[2]))
assert found is not None and found.complete, found
print(time.perf_counter() - began)
"""


def cold(pid: int, tid: int) -> float:
    """Seconds in a process that has seen no file of the target's before."""
    command = [sys.executable, "-c", _LOOK, str(pid), str(tid)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def warm(unwinder: Unwinder, tid: int) -> list[float]:
    """Seconds of each of some looks."""
    times = []
    for _ in range(WARM):
        began = time.perf_counter()
        assert unwinder.blocked(tid) is not None
        times.append(time.perf_counter() - began)
    return times


def stops(pid: int, tid: int) -> list[float]:
    """Seconds between the order to stop and the one to go on."""
    times: list[float] = []
    ptrace, found = ptrace_stop._ptrace, machine()
    assert found is not None

    def timed(request: int, *rest: object) -> int:
        if request == ptrace_stop._INTERRUPT:
            times.append(-time.perf_counter())
        done: int = ptrace(request, *rest)
        if request == ptrace_stop._DETACH:
            times[-1] += time.perf_counter()
        return done

    ptrace_stop._ptrace = timed
    for _ in range(WARM):
        assert ptrace_stop.copy(pid, tid, found) is not None
    ptrace_stop._ptrace = ptrace
    return times


def told(times: list[float]) -> str:
    """Least, median and most, in ms."""
    ms = sorted(time * 1000 for time in times)
    return f"{ms[0]:.2f} / {statistics.median(ms):.2f} / {ms[-1]:.2f}"


def main() -> None:
    rounds = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        for name, flags in BUILDS.items():
            with Target([compiler.program("asleep", *flags)]) as target:
                tids = target.truth()
                for way in WAYS:
                    unwinder = Unwinder(target.pid)
                    stack = unwinder.blocked(tids[way])
                    assert stack is not None
                    first = [cold(target.pid, tids[way]) for _ in range(rounds)]
                    print(
                        f"{name}, {way}, {len(stack.addresses)} frames:"
                        f" first {told(first)} ms, later {told(warm(unwinder, tids[way]))} ms"
                    )
                print(f"stopped for {told(stops(target.pid, tids['deep']))} ms")


if __name__ == "__main__":
    main()
