"""Measures how the memory of a screen, of `listen` and of `watch` grows (docs/overhead.md).

    make growth-bench GROWTH_MINUTES=70

The screen runs the demonstration. The program of the demonstration is streamed to a listener, and
watched. All three have their usual rates and histories. A history of 15 minutes fills first. The
table has the private memory (USS) of each process after some minutes and at the end. The last
column is the growth in the last part, as bytes an hour.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from support.pty_tool import PtyTool
from support.tool import COMMAND

#: Minutes at which the memory is read.
_MARKS = (1.0, 10.0, 16.0)
_EVERY_S = 5.0
_SIZE = (80, 24)


def uss(process: psutil.Process) -> int:
    """Return the private memory of a process in bytes, the median of five readings.

    A scan or a collection of garbage may be under way.
    """
    readings = []
    for _ in range(5):
        readings.append(int(process.memory_full_info().uss))
        time.sleep(0.3)
    return sorted(readings)[2]


def started(stack: ExitStack, directory: Path) -> dict[str, psutil.Process]:
    """Start the three tools; return their processes by name."""
    screen = stack.enter_context(PtyTool([COMMAND, "demo"], _SIZE))
    screen.shows("Locks")
    found = {"screen": psutil.Process(screen.process.pid)}  # `setsid` has become locktop
    (program,) = (one for one in found["screen"].children(recursive=True) if "demo" in one.name())
    socket = f"unix://{directory}/socket"
    listener = stack.enter_context(PtyTool([COMMAND, "listen", socket], _SIZE))
    while not (directory / "socket").exists():
        time.sleep(0.1)
    pid = str(program.pid)
    stack.enter_context(PtyTool([COMMAND, "stream", "-p", pid, "--to", socket], _SIZE))
    listener.shows("Locks")
    command = [COMMAND, "watch", "-p", pid, "--on-wait", "1s", "true"]
    watch = stack.enter_context(PtyTool(command, _SIZE))
    found["listen"] = psutil.Process(listener.process.pid)
    found["watch"] = psutil.Process(watch.process.pid)
    return found


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(description="how the memory of the tool grows")
    parser.add_argument("--minutes", type=float, default=70.0)
    minutes = parser.parse_args().minutes
    marks = [*(mark for mark in _MARKS if mark < minutes), minutes]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as directory:
        processes = started(stack, Path(directory))
        begin = time.monotonic()
        rows: dict[str, list[int]] = {name: [] for name in processes}
        for mark in marks:
            while time.monotonic() < begin + 60 * mark:
                time.sleep(_EVERY_S)
            for name, process in processes.items():
                rows[name].append(uss(process))
            print(f"{mark:g} min: { {name: row[-1] >> 10 for name, row in rows.items()} } kB",
                  file=sys.stderr, flush=True)  # fmt: skip
    heads = " | ".join(f"{mark:g} min" for mark in marks)
    print(f"| | {heads} | an hour |\n|---|{'---|' * (len(marks) + 1)}")
    for name, row in rows.items():
        figures = " | ".join(f"{value / 1e6:.1f} MB" for value in row)
        hour = (row[-1] - row[-2]) / max(marks[-1] - marks[-2], 1e-9) * 60 if len(row) > 1 else 0.0
        print(f"| {name} | {figures} | {hour / 1e6:+.1f} MB |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
