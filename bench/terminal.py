"""Measures the time to the first text, the time to the effect of a key, and bytes a second.

The process is the demonstration program. Each figure is the median of ROUNDS, and the best one.
Usage: terminal.py ROUNDS
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from support.keys import bytes_of
from support.pty_tool import PtyTool
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program

SECONDS = 10.0  # of the live screen, for its bytes
KEYS = ("down", "tab", "question_mark")


def seconds_until(reached: Callable[[], bool]) -> float:
    """Return how long it took until ``reached`` was true."""
    begin = time.perf_counter()
    while not reached():
        time.sleep(0.001)
        assert time.perf_counter() - begin < 60
    return time.perf_counter() - begin


def screen_of(pid: int, *before: str, **environment: str) -> PtyTool:
    """Return the screen of a process on a new terminal, under the command ``before``."""
    return PtyTool([*before, COMMAND, "-p", str(pid)], environment=environment)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, which other processes hardly change."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_text(pid: int) -> tuple[float, float, float]:
    """Return the seconds to the first byte, the CPU seconds to it, and those to a snapshot."""
    begin = time.perf_counter()
    with screen_of(pid) as tool:
        seconds_until(lambda: tool.received > 0)
        first, cpu_s = time.perf_counter() - begin, cpu_seconds(tool.process.pid)
        seconds_until(lambda: "q quit" in tool.text)
        return first, cpu_s, time.perf_counter() - begin


def key_to_paint(pid: int, key: str) -> float:
    """Return the seconds from a key to the first byte after the key."""
    with screen_of(pid) as tool:
        tool.shows("q quit")
        tool.press("p")  # so that no snapshot writes
        tool.shows("PAUSED")
        mark = tool.received
        tool.press(bytes_of(key))
        return seconds_until(lambda: tool.received > mark)


def bytes_a_second(pid: int, *before: str, **environment: str) -> float:
    """Return the output of a live screen to its terminal."""
    with screen_of(pid, *before, **environment) as tool:
        tool.shows("q quit")
        time.sleep(3.0)  # the first scans are closer
        mark = tool.received
        time.sleep(SECONDS)
        return (tool.received - mark) / SECONDS


def tell(name: str, values: list[float], unit: str) -> None:
    """Print one line."""
    print(f"{name:48} median {median(values):8.3f}  best {min(values):8.3f} {unit}", flush=True)


def main() -> None:
    rounds = int(sys.argv[1])
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {rounds} rounds")
    with (
        tempfile.TemporaryDirectory() as directory,
        Target([demo_program()], preload_environment(None)) as target,
    ):
        found = [first_text(target.pid) for _ in range(rounds)]
        tell("first byte after `locktop -p PID`", [one[0] for one in found], "s")
        tell("CPU time to the first byte", [one[1] for one in found], "s")
        tell("first snapshot", [one[2] for one in found], "s")
        for key in KEYS:
            tell(
                f"{key}: key to paint", [key_to_paint(target.pid, key) for _ in range(rounds)], "s"
            )
        tell("bytes a second, 2 snapshots a second", [bytes_a_second(target.pid)], "B/s")
        tmux = shutil.which("tmux")
        if tmux is None:
            print("tmux is not installed")
            return
        command = (tmux, "-u", "-S", f"{directory}/tmux", "-f", "/dev/null", "new-session")
        for synchronized in ("false", "true"):
            name = f"the same behind tmux, synchronized = {synchronized}"
            value = bytes_a_second(target.pid, *command, LOCKTOP_SYNCHRONIZED=synchronized)
            tell(name, [value], "B/s")
            subprocess.run([*command[:4], "kill-server"], check=False)


main()
