"""Measures memory and time for many locks and threads: ``python bench/sizes.py`` prints a table.

Each case runs tests/targets/limits/locks_and_threads_by_count.c without the library and with it.
"memory" is the size of the target's file. "first" is the time of a thread's first lock
and unlock of a free mutex in nanoseconds. "later" is the time of later ones. "snapshot" and "check"
are the times of these commands, with the start of Python and all names. "scan" is the time of one
more scan, after the first scans. All these times are CPU times, so other busy programs do not
count. "screen" is the wall time from ``locktop -p PID`` to the first full screen.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support import tool
from support.screen import Screen
from support.targets import Compiler, Target, remove_file_of, start_time

from locktop.collector.sources.launch import preload_environment
from locktop.collector.sources.preload.source import PreloadSource

CASES = (
    ("locks", 1_000_000, 1),
    ("locks", 1_000_000, 8),
    ("locks", 1_500_000, 1),
    ("all", 1_000, 200),
    ("threads", 4, 500),
    ("threads", 4, 10_000),
    ("threads", 4, 12_000),
    ("lives", 1_000, 1_000),
    ("held", 20_000, 1),
)
SCANS = 7


def cpu_of_a_scan(pid: int) -> float:
    """Return the median CPU time of a scan, seconds."""
    source, times = PreloadSource(pid), []
    for _ in range(SCANS):
        before = time.process_time()
        source.scan()
        times.append(time.process_time() - before)
    source.close()
    return statistics.median(times[2:])


def cpu_of(*arguments: str | int) -> float:
    """Return the CPU time of a command of the tool, seconds."""

    def children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    done = tool.run(*arguments)
    assert done.returncode == 0, done.stderr
    return children() - before


def seconds_to_screen(pid: int) -> float:
    """Return the wall time from the start of the tool to the first full screen."""
    tmux = shutil.which("tmux")
    assert tmux, "needs tmux"
    before = time.monotonic()
    with Screen(Path(tmux), "-p", pid) as screen:
        screen.until(lambda text: "  level " in text, "a full screen")
        return time.monotonic() - before


def unprepared(program: Path, arguments: list[str]) -> dict[str, Any]:
    """Return the target's own figures without the library."""
    with Target([program, *arguments]) as target:
        return target.truth()


def measure(program: Path, what: str, locks: int, threads: int) -> str:
    """Return a row."""
    arguments = [what, str(locks), str(threads)]
    without = unprepared(program, arguments)
    with Target([program, *arguments], preload_environment(None)) as target:
        started = start_time(target.pid)
        truth = target.truth()
        taken = Path(f"/dev/shm/locktop-{target.pid}-{started}").stat().st_blocks * 512
        first = cpu_of("snapshot", "-p", target.pid, "--format", "json")
        check = cpu_of("check", "-p", target.pid)
        scan = cpu_of_a_scan(target.pid)
        screen = seconds_to_screen(target.pid)
    remove_file_of(target.pid, started)
    return (
        f"| {what} | {locks:,} | {threads:,} | {taken / 1e6:.1f} MB | {without['first']:.0f}"
        f" | {truth['first']:.0f} | {without['last']:.0f} | {truth['last']:.0f}"
        f" | {first:.2f} s | {check:.2f} s | {scan * 1000:.0f} ms | {screen:.1f} s |"
    )


def main() -> None:
    """Print the table."""
    print(
        "| | locks | threads | memory | first, unprepared | first | later, unprepared | later",
        end="",
    )
    print(" | snapshot | check | scan | screen |")
    print("| --- |" + " ---: |" * 11)
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("locks_and_threads_by_count")
        for case in CASES:
            print(measure(program, *case), flush=True)


if __name__ == "__main__":
    main()
