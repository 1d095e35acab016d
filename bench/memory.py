"""Measures what the memory of a live screen costs the tool (docs/overhead.md).

    make memory-bench CROWDS="300 500 2000"

The program is tests/targets/contention/busy_crowd.c, as for ``make scan-bench``. "scans" is the CPU
share of two scans a second, "memory" that of keeping them. "kept" is how often a snapshot was kept.
"a moment" is the time to read a kept snapshot: median and most, of all moments, the newest first.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support.targets import Compiler, Target

from locktop.collector.recording.history import History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

INTERVAL_S, SCANS, WARM_UP = 0.5, 40, 6


def row(compiler: Compiler, threads: int) -> str:
    """Return the row of one crowd."""
    environment = preload_environment(None)
    with Target([compiler.program("busy_crowd"), str(threads)], environment) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            history = History()
            keeper = MemoryKeeper(source, history)  # the records have a thread of their own
            scanned_s = kept_s = 0.0
            began_at, kept_before = 0.0, 0
            for number in range(WARM_UP + SCANS):
                if number == WARM_UP:
                    scanned_s = kept_s = 0.0
                    began_at = time.monotonic()
                    kept_before = len(history.times_ns())
                at = time.monotonic()
                used = time.thread_time()
                snapshot = source.scan()
                after = time.thread_time()
                keeper.keep(snapshot)
                scanned_s, kept_s = scanned_s + after - used, kept_s + time.thread_time() - after
                time.sleep(max(0.0, at + INTERVAL_S - time.monotonic()))
            wall_s = time.monotonic() - began_at
            keeper.close()
    kept = len(history.times_ns()) - kept_before
    took = []
    for time_ns in reversed(history.times_ns()):
        at = time.perf_counter()
        history.snapshot_at(time_ns)
        took.append(1000 * (time.perf_counter() - at))
    return (
        f"| {threads:,} threads | {100 * scanned_s / wall_s:.1f} % |"
        f" {100 * kept_s / wall_s:.2f} % | each {wall_s / max(kept, 1):.1f} s |"
        f" {statistics.median(took):.0f} / {max(took):.0f} ms |"
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        compiler = Compiler(Path(directory))
        print("| | scans | memory | kept | a moment |")
        print("| --- |" + " ---: |" * 4)
        for threads in map(int, sys.argv[1].split()):
            print(row(compiler, threads), flush=True)


if __name__ == "__main__":
    main()
