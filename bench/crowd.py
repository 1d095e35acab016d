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

import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support.targets import Compiler, Target
from tool_costs import (
    INTERVAL_S,
    LOCKTOP,
    cpu_shares,
    milliseconds,
    on_screen,
    percents,
    scan_costs,
)

from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

SCANS = 14
WARM_UP = 10  # scans


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
            screen = cpu_shares(tool, SCANS)
        program = cpu_shares(target.pid, 4)
    name = "with the library" if preloaded else "sampled"
    cells = [f"{name}, {threads:,} threads", milliseconds(took)]
    cells += map(percents, (alone, screen, program))
    return f"| {' | '.join(cells)} |"


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
