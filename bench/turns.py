"""Compares what a busy crowd costs two versions of the tool, which take turns (CONTRIBUTING.md).

    .venv/bin/python bench/turns.py BEFORE NOW [THREADS [ROUNDS]]

BEFORE and NOW are two checkouts, each after ``make setup``. Both watch the same crowd of threads,
so other load of the machine makes the figures of both larger. "a scan" is the CPU time of a scan.
"with a screen" is that of a screen of 120x40, for each of its scans. Each has the least and the
median, and the shares of a CPU that two scans a second take. The ratio of the two versions is the
median of the pairs, with the least and the most. 500 threads and 8 rounds take 8 minutes.
"""

from __future__ import annotations

import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

CROWD = "tests/targets/contention/busy_crowd.c"
ENVIRONMENT = """
import json
from locktop.collector.sources.launch import preload_environment
print(json.dumps(dict(preload_environment(None))))
"""
#: Prints the CPU seconds of a scan, after WARM_UP scans.
SCANS = """
import sys, time
from locktop.collector.sources.attach import attach
source = attach(int(sys.argv[1]))
warm_up, count = int(sys.argv[2]), int(sys.argv[3])
for number in range(warm_up + count):
    if number == warm_up:
        began = time.process_time()
    source.scan()
    time.sleep(0.45)
print((time.process_time() - began) / count)
"""
#: A screen that appends its scans and its CPU seconds to a file, at each signal.
SCREEN = """
import os, signal, sys, time
from locktop.collector.sources.poller import Poller
scans, scan = 0, Poller._scan
def counted(poller):
    global scans
    scans += 1
    return scan(poller)
def tell(*_):
    with open(sys.argv[-1], "a") as out:
        print(scans, time.process_time(), file=out, flush=True)
Poller._scan = counted
signal.signal(signal.SIGUSR1, tell)
from locktop.tui.cli import main
sys.exit(main(sys.argv[1:-1]))
"""
WARM_UP, COUNT = 10, 20  # scans
WARM_UP_S, MEASURED_S = 7.0, 10.0


def python(checkout: str) -> str:
    """Return the interpreter of a checkout."""
    return f"{checkout}/.venv/bin/python"


def scan_s(checkout: str, pid: int) -> float:
    """Return the CPU seconds of a scan."""
    command = [python(checkout), "-c", SCANS, str(pid), str(WARM_UP), str(COUNT)]
    return float(subprocess.check_output(command, cwd=checkout))


def screen_s(checkout: str, pid: int) -> float:
    """Return the CPU seconds of a screen for each of its scans."""
    leader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 120))
    with tempfile.NamedTemporaryFile("r") as lines_of_screen:
        tool = subprocess.Popen(
            [python(checkout), "-c", SCREEN, "-p", str(pid), lines_of_screen.name],
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=checkout,
        )
        os.close(terminal)
        threading.Thread(target=drain, args=(leader,), daemon=True).start()
        lines: list[str] = []
        for pause_s in (WARM_UP_S, MEASURED_S):
            time.sleep(pause_s)
            subprocess.run(["kill", "-USR1", str(tool.pid)], check=True)
        while len(lines) < 2:
            time.sleep(0.1)
            lines += lines_of_screen.readlines()
        tool.kill()
        tool.wait()
    (first, used), (last, used_last) = (map(float, line.split()) for line in lines)
    return (used_last - used) / (last - first)


def drain(terminal: int) -> None:
    """Read the output to a terminal until its program has ended."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        os.close(terminal)


def compare(name: str, measure: Callable[[str, int], float], pid: int, rounds: int) -> None:
    """Measure both versions in turns, and print the figures."""
    checkouts = sys.argv[1:3]
    found: dict[str, list[float]] = {checkout: [] for checkout in checkouts}
    for number in range(rounds):
        for checkout in checkouts if number % 2 else reversed(checkouts):
            found[checkout].append(measure(checkout, pid))
    for checkout, took in found.items():
        least, median = min(took), statistics.median(took)
        print(
            f"{checkout}: {name} {1000 * least:.1f} / {1000 * median:.1f} ms,"
            f" {200 * least:.1f} / {200 * median:.1f} %",
            flush=True,
        )
    before, now = found.values()
    ratios = [after / earlier for earlier, after in zip(before, now, strict=True)]
    print(f"{name}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    threads, rounds = (*sys.argv[3:5], *("500", "8")[len(sys.argv) - 3 :])
    command = [python(sys.argv[1]), "-c", ENVIRONMENT]
    environment = json.loads(subprocess.check_output(command, cwd=sys.argv[1]))
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        program = Path(directory) / "busy_crowd"
        source = Path(sys.argv[2]) / CROWD
        build = ["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", str(program), str(source)]
        subprocess.run(build, check=True)
        crowd = subprocess.Popen(
            [program, threads],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert crowd.stdout is not None
            assert crowd.stdout.readline() == b"ready\n"
            compare("a scan", scan_s, crowd.pid, int(rounds))
            compare("with a screen", screen_s, crowd.pid, int(rounds))
        finally:
            crowd.kill()


if __name__ == "__main__":
    main()
