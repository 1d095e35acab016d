"""How long the stack of a thread of another process takes (docs/overhead.md)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from support.targets import Compiler, Target

from locktop.collector.unwind import ptrace_stop
from locktop.collector.unwind.arch import architecture
from locktop.collector.unwind.unwinder import Unwinder

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
from locktop.collector.unwind.unwinder import Unwinder
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
import locktop.collector.unwind.unwinder
print(time.perf_counter() - began, time.thread_time() - used)
"""


def told_by(*command: str) -> Took:
    """What a new process of Python says it took."""
    done = subprocess.run([sys.executable, "-c", *command], check=True, capture_output=True)
    said = done.stdout.split()
    return Took(float(said[0]), float(said[1]))


def cold(pid: int, tid: int) -> Took:
    """Seconds in a process that has seen no file of the target's before."""
    return told_by(_SCAN, str(pid), str(tid))


def warm(unwinder: Unwinder, tid: int) -> Took:
    """Seconds of one more look."""
    began, used = time.perf_counter(), time.thread_time()
    assert unwinder.blocked(tid) is not None
    return Took(time.perf_counter() - began, time.thread_time() - used)


def stops(pid: int, tid: int) -> list[float]:
    """Seconds between the order to stop and the one to go on."""
    times: list[float] = []
    ptrace, found = ptrace_stop._ptrace, architecture()
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
        ptrace_stop.copy(pid, tid, found)  # on a busy machine it may not stop in time
    ptrace_stop._ptrace = ptrace
    return times


def told(seconds: list[float]) -> str:
    """Least and median, in ms."""
    return f"{min(seconds) * 1000:.2f} / {statistics.median(seconds) * 1000:.2f}"


def both(times: list[Took]) -> str:
    """By the clock, and of a processor."""
    clock, processor = [one.clock for one in times], [one.processor for one in times]
    return f"{told(clock)} ms, processor {told(processor)} ms"


def main() -> None:
    rounds = int(sys.argv[1])
    print(f"to load what follows stacks {both([told_by(_LOAD) for _ in range(rounds)])}")
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        with Target([compiler.program("thousand_threads"), "500"]) as target:
            target.expect("ready")
            scans = [told_by(_FIRST, str(target.pid)) for _ in range(rounds)]
            print(f"a first look at 501 threads {both(scans)}")
        for name, flags in BUILDS.items():
            with Target([compiler.program("asleep_in_stack_shapes", *flags)]) as target:
                tids = target.truth()
                for way in WAYS:
                    unwinder = Unwinder(target.pid)
                    stack = unwinder.blocked(tids[way])
                    assert stack is not None
                    first = [cold(target.pid, tids[way]) for _ in range(rounds)]
                    later = [warm(unwinder, tids[way]) for _ in range(WARM)]
                    print(f"{name}, {way}, {len(stack.addresses)} frames:")
                    print(f"  first {both(first)}\n  later {both(later)}")
                print(f"stopped for {told(stops(target.pid, tids['deep']))} ms")


if __name__ == "__main__":
    main()
