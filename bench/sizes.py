"""What many locks and many threads take: ``python bench/sizes.py``, as a table.

Each case runs tests/targets/limits/locks_and_threads_by_count.c without the library and with it.
Memory is what the target's file takes. ns: a lock and unlock of a mutex that nobody else wants, the
first time that a thread takes it, and later. Snapshot and check are those commands, start of
Python, names and all; look is to look once more, after the first looks. All these times are of one
processor, so that others who are busy do not count. Picture is the time by the wall clock from
``locktop -p PID`` to its first picture.
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
    """Return the median, seconds."""
    source, spent = PreloadSource(pid), []
    for _ in range(SCANS):
        before = time.process_time()
        source.scan()
        spent.append(time.process_time() - before)
    source.close()
    return statistics.median(spent[2:])


def cpu_of(*arguments: str | int) -> float:
    """Return what a command of the tool takes, seconds."""

    def children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    done = tool.run(*arguments)
    assert done.returncode == 0, done.stderr
    return children() - before


def until_pictured(pid: int) -> float:
    """Return the seconds."""
    tmux = shutil.which("tmux")
    assert tmux, "needs tmux"
    before = time.monotonic()
    with Screen(Path(tmux), "-p", pid) as screen:
        screen.until(lambda text: "  level " in text, "a picture")
        return time.monotonic() - before


def bare(program: Path, arguments: list[str]) -> dict[str, Any]:
    """Return what the target measures without the library."""
    with Target([program, *arguments]) as target:
        return target.truth()


def measure(program: Path, what: str, locks: int, threads: int) -> str:
    """Return a row."""
    arguments = [what, str(locks), str(threads)]
    without = bare(program, arguments)
    with Target([program, *arguments], preload_environment(None)) as target:
        started = start_time(target.pid)
        truth = target.truth()
        taken = Path(f"/dev/shm/locktop-{target.pid}-{started}").stat().st_blocks * 512
        first = cpu_of("snapshot", "-p", target.pid, "--format", "json")
        check = cpu_of("check", "-p", target.pid)
        scan = cpu_of_a_scan(target.pid)
        picture = until_pictured(target.pid)
    remove_file_of(target.pid, started)
    return (
        f"| {what} | {locks:,} | {threads:,} | {taken / 1e6:.1f} MB | {without['first']:.0f}"
        f" | {truth['first']:.0f} | {without['last']:.0f} | {truth['last']:.0f}"
        f" | {first:.2f} s | {check:.2f} s | {scan * 1000:.0f} ms | {picture:.1f} s |"
    )


def main() -> None:
    """Print the table."""
    print("| | locks | threads | memory | first, bare | first | later, bare | later", end="")
    print(" | snapshot | check | look | picture |")
    print("| --- |" + " ---: |" * 11)
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("locks_and_threads_by_count")
        for case in CASES:
            print(measure(program, *case), flush=True)


if __name__ == "__main__":
    main()
