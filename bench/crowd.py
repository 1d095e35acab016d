"""Measures what a busy crowd of threads costs the tool (docs/overhead.md).

    make scan-bench CROWDS="300 500 2000" SNAPSHOT_OF=10000

The program is tests/targets/contention/busy_crowd.c: threads on 42 locks, each of which waits 10 to
30 times a second. Each row has one crowd, with the library or sampled. "scan" is the CPU time of a
scan, least and median. "scans" is the CPU share of a process that only scans twice a second.
"screen" is the CPU share of ``locktop -p PID`` in a terminal of 120 columns and 40 lines. Both are
least and median of the intervals from scan to scan. "program" is the CPU share of the program
itself. A busy machine makes all figures larger.

The last line is about ``locktop snapshot --format json`` of a larger crowd. The line has the wall
time, the CPU time and the largest memory of the command.
"""

from __future__ import annotations

import contextlib
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from support.targets import Compiler, Target

from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

INTERVAL_S = 0.5  # from scan to scan
SCANS = 14
WARM_UP = 10  # scans
LOCKTOP = str(Path(sys.executable).with_name("locktop"))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all living threads of a process, seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def shares(pid: int, count: int) -> list[float]:
    """Return the CPU share of a process in each of ``count`` intervals."""
    found = []
    at, used = time.monotonic(), cpu_seconds(pid)
    for _ in range(count):
        time.sleep(INTERVAL_S)
        now, now_used = time.monotonic(), cpu_seconds(pid)
        found.append((now_used - used) / (now - at))
        at, used = now, now_used
    return found


def scan_costs(source: Source, count: int) -> tuple[list[float], list[float]]:
    """Scan twice a second. Return the CPU seconds of each scan, and the CPU share of this process
    in each interval."""
    took, found = [], []
    at, used = time.monotonic(), time.process_time()
    for _ in range(count):
        before = time.thread_time()
        source.scan()
        took.append(time.thread_time() - before)
        time.sleep(max(0.0, at + INTERVAL_S - time.monotonic()))
        now, now_used = time.monotonic(), time.process_time()
        found.append((now_used - used) / (now - at))
        at, used = now, now_used
    return took, found


@contextlib.contextmanager
def on_screen(pid: int) -> Iterator[int]:
    """Show the process on a screen; yield the pid of the tool."""
    leader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 120))
    environment = {**os.environ, "TERM": "xterm-256color"}
    tool = subprocess.Popen(
        [LOCKTOP, "-p", str(pid)],
        env=environment,
        start_new_session=True,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    reader = threading.Thread(target=drain, args=(leader,), daemon=True)
    reader.start()
    try:
        yield tool.pid
    finally:
        tool.kill()
        tool.wait()
        reader.join()
        os.close(leader)


def drain(terminal: int) -> None:
    """Read the output to a terminal until its program has ended."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


def row(compiler: Compiler, threads: int, preloaded: bool) -> str:
    """Return the row of one crowd."""
    environment = preload_environment(None) if preloaded else None
    with Target([compiler.program("busy_crowd"), str(threads)], environment) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            scan_costs(source, WARM_UP)
            took, alone = scan_costs(source, SCANS)
        with on_screen(target.pid) as tool:
            time.sleep(WARM_UP * INTERVAL_S)
            screen = shares(tool, SCANS)
        program = shares(target.pid, 4)
    name = "with the library" if preloaded else "sampled"
    milliseconds = f"{1000 * min(took):.1f} / {1000 * statistics.median(took):.1f} ms"
    cells = [f"{name}, {threads:,} threads", milliseconds, *map(percents, (alone, screen, program))]
    return f"| {' | '.join(cells)} |"


def percents(found: Sequence[float]) -> str:
    return f"{100 * min(found):.1f} / {100 * statistics.median(found):.1f} %"


def snapshot_of(compiler: Compiler, threads: int) -> str:
    """Return what a snapshot of so many threads takes."""
    environment = preload_environment(None)
    with Target([compiler.program("busy_crowd"), str(threads)], environment) as target:
        target.expect("ready")
        with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
            path = Path(directory) / "snapshot.json"
            command = [LOCKTOP, "snapshot", "-p", str(target.pid), "-o", str(path)]
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run(command, check=True)
            wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            size = path.stat().st_size
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        f"snapshot of {threads:,} threads: {wall_s:.2f} s, {cpu_s:.2f} s of a CPU,"
        f" {after.ru_maxrss / 1024:.0f} MB of memory, {size / 1e6:.1f} MB of JSON"
    )


def main() -> None:
    crowds, large = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        compiler = Compiler(Path(directory))
        if crowds.strip():
            print("| | a scan, least / median | scans | screen | program |")
            print("| --- |" + " ---: |" * 4)
        for threads in map(int, crowds.split()):
            for preloaded in (True, False):
                print(row(compiler, threads, preloaded), flush=True)
        if large:
            print(snapshot_of(compiler, large))


if __name__ == "__main__":
    main()
