"""Measure the costs of the tool while it watches a process: the scans and the screen."""

from __future__ import annotations

import contextlib
import os
import pty
import statistics
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from locktop.collector.sources.base import Source

INTERVAL_S = 0.5  # from scan to scan
LOCKTOP = str(Path(sys.executable).with_name("locktop"))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all living threads of a process, seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def cpu_shares(pid: int, count: int) -> list[float]:
    """Return the CPU share of a process in each of ``count`` intervals."""
    shares = []
    at, used = time.monotonic(), cpu_seconds(pid)
    for _ in range(count):
        time.sleep(INTERVAL_S)
        now, now_used = time.monotonic(), cpu_seconds(pid)
        shares.append((now_used - used) / (now - at))
        at, used = now, now_used
    return shares


def scan_costs(source: Source, count: int) -> tuple[list[float], list[float]]:
    """Scan ``count`` times, twice a second. Return the CPU seconds of each scan, and the CPU share
    of this process in each interval."""
    took, shares = [], []
    at, used = time.monotonic(), time.process_time()
    for _ in range(count):
        before = time.thread_time()
        source.scan()
        took.append(time.thread_time() - before)
        time.sleep(max(0.0, at + INTERVAL_S - time.monotonic()))
        now, now_used = time.monotonic(), time.process_time()
        shares.append((now_used - used) / (now - at))
        at, used = now, now_used
    return took, shares


@contextlib.contextmanager
def on_screen(pid: int) -> Iterator[int]:
    """Show the process on a screen of 120 columns and 40 lines; yield the pid of the tool."""
    leader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 120))
    tool = subprocess.Popen(
        [LOCKTOP, "-p", str(pid)],
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    reader = threading.Thread(target=_drain, args=(leader,), daemon=True)
    reader.start()
    try:
        yield tool.pid
    finally:
        tool.kill()
        tool.wait()
        reader.join()
        os.close(leader)


def _drain(terminal: int) -> None:
    """Read the output to a terminal until its program has ended."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


def milliseconds(took: Sequence[float]) -> str:
    """Return the least and the median of some seconds."""
    return f"{1000 * min(took):.1f} / {1000 * statistics.median(took):.1f} ms"


def percents(shares: Sequence[float]) -> str:
    """Return the least and the median of some shares."""
    return f"{100 * min(shares):.1f} / {100 * statistics.median(shares):.1f} %"
