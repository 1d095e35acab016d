"""Measures the time to read a stack of another process's thread (docs/overhead.md)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from support.targets import Compiler, Target

from locktop.collector.symbols.unwind import ptrace_stop
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.unwinder import Unwinder

WARM = 100


class Took(NamedTuple):
    """Seconds."""

    clock: float
    processor: float


BUILDS = {
    "without frame pointers": ("-O2", "-fomit-frame-pointer"),
    "with frame pointers": ("-O2", "-fno-omit-frame-pointer"),
}
WAYS = ("twenty", "deep", "reads")
_SCAN = """\
import sys, time
from locktop.collector.symbols.unwind.unwinder import Unwinder
began, used = time.perf_counter(), time.thread_time()
found = Unwinder(int(sys.argv[1])).blocked(int(sys.argv[2]))
assert found is not None and found.complete, found
print(time.perf_counter() - began, time.thread_time() - used)
"""
_FIRST = """\
import sys, time
from locktop.collector.sources.sampling.source import SamplingSource
began, used = time.perf_counter(), time.thread_time()
SamplingSource(int(sys.argv[1])).scan()
print(time.perf_counter() - began, time.thread_time() - used)
"""
_LOAD = """\
import time
import locktop.collector.sources.sampling.source
began, used = time.perf_counter(), time.thread_time()
import locktop.collector.symbols.unwind.unwinder
print(time.perf_counter() - began, time.thread_time() - used)
"""


def timed_in_new_process(*command: str) -> Took:
    """Run Python code in a new process; return the times that the code prints."""
    done = subprocess.run([sys.executable, "-c", *command], check=True, capture_output=True)
    said = done.stdout.split()
    return Took(float(said[0]), float(said[1]))


def cold(pid: int, tid: int) -> Took:
    """Measure in a process that has not read any file of the target before."""
    return timed_in_new_process(_SCAN, str(pid), str(tid))


def warm(unwinder: Unwinder, tid: int) -> Took:
    """Measure one more read of a stack."""
    began, used = time.perf_counter(), time.thread_time()
    assert unwinder.blocked_stack(tid) is not None
    return Took(time.perf_counter() - began, time.thread_time() - used)


def stops(pid: int, tid: int) -> list[float]:
    """Return the seconds between the request to stop and the request to go on."""
    times: list[float] = []
    ptrace, found = ptrace_stop.ptrace, architecture()
    assert found is not None

    def timed(request: int, *rest: object) -> int:
        if request == ptrace_stop._INTERRUPT:
            times.append(-time.perf_counter())
        done: int = ptrace(request, *rest)
        if request == ptrace_stop._DETACH:
            times[-1] += time.perf_counter()
        return done

    ptrace_stop.ptrace = timed
    for _ in range(WARM):
        ptrace_stop.copy(pid, tid, found)  # on a busy machine it may not stop in time
    ptrace_stop.ptrace = ptrace
    return times


def min_and_median(seconds: list[float]) -> str:
    """Format the least and the median, in ms."""
    return f"{min(seconds) * 1000:.2f} / {statistics.median(seconds) * 1000:.2f}"


def both(times: list[Took]) -> str:
    """Format wall times and CPU times."""
    clock, processor = [one.clock for one in times], [one.processor for one in times]
    return f"{min_and_median(clock)} ms, processor {min_and_median(processor)} ms"


def main() -> None:
    rounds = int(sys.argv[1])
    print(
        f"to load what follows stacks {both([timed_in_new_process(_LOAD) for _ in range(rounds)])}"
    )
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        with Target([compiler.program("thousand_threads"), "500"]) as target:
            target.expect("ready")
            scans = [timed_in_new_process(_FIRST, str(target.pid)) for _ in range(rounds)]
            print(f"a first scan of 501 threads {both(scans)}")
        for name, flags in BUILDS.items():
            with Target([compiler.program("asleep_in_stack_shapes", *flags)]) as target:
                tids = target.truth()
                for way in WAYS:
                    unwinder = Unwinder(target.pid)
                    stack = unwinder.blocked_stack(tids[way])
                    assert stack is not None
                    first = [cold(target.pid, tids[way]) for _ in range(rounds)]
                    later = [warm(unwinder, tids[way]) for _ in range(WARM)]
                    print(f"{name}, {way}, {len(stack.addresses)} frames:")
                    print(f"  first {both(first)}\n  later {both(later)}")
                print(f"stopped for {min_and_median(stops(target.pid, tids['deep']))} ms")


if __name__ == "__main__":
    main()
