"""Measures what a stream of a busy crowd of threads costs both ends (docs/overhead.md).

    make stream-bench CROWD=500

The program is tests/targets/contention/busy_crowd.c. Each row has one transport. "bytes" is what
the frames take in a second. "sender" is the CPU share of ``locktop stream``, least and median of
the intervals from scan to scan. "listener" is the mean CPU share of a listener that draws nothing.
"datagrams" is what UDP lost. A busy machine makes all figures larger.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support.streams import Authority, Ear, options
from support.targets import Compiler, Target
from tool_costs import INTERVAL_S, LOCKTOP, cpu_shares, percents

from locktop.collector.sources.launch import preload_environment

SCANS = 14
WARM_UP = 10  # snapshots


def row(name: str, pid: int, ear: Ear, extra: tuple[str, ...]) -> str:
    """Return the row of one transport."""
    command = [LOCKTOP, "stream", "-p", str(pid), "--to", ear.url, *extra]
    sender = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        ear.wait_snapshots(WARM_UP)
        used, began = time.process_time(), time.monotonic()
        found = cpu_shares(sender.pid, SCANS)
        listener = (time.process_time() - used) / (time.monotonic() - began)
        before = ear.snapshots[0].duration_s
        seconds = ear.snapshots[-1].duration_s - before
    finally:
        sender.terminate()
        _, said = sender.communicate()
    words = said.splitlines()[-1].split()
    size = int(words[-2].replace(",", "")) / seconds
    notes = [note for note in ear.snapshots[-1].notes if "datagrams" in note]
    cells = [name, f"{size / 1000:,.0f} KB/s", percents(found), f"{100 * listener:.1f} %"]
    return f"| {' | '.join([*cells, *(notes or ['lost 0'])])} |"


def main() -> None:
    threads = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        compiler = Compiler(Path(directory))
        authority = Authority(Path(directory) / "authority")
        ends: dict[str, Callable[[], Ear]] = {
            "unix socket": lambda: Ear(f"unix://{directory}/socket"),
            "TCP with TLS": lambda: Ear("tcp://:0", authority.files("listener")),
            "UDP": lambda: Ear("udp://:0"),
        }
        command = [compiler.program("busy_crowd"), threads]
        with Target(command, preload_environment(None)) as target:
            target.expect("ready")
            print("| | bytes | sender, least / median | listener | datagrams |")
            print("| --- |" + " ---: |" * 4)
            for name, opened in ends.items():
                extra = options(authority.files("sender")) if "TLS" in name else ()
                with opened() as ear:
                    print(row(name, target.pid, ear, extra), flush=True)
                    time.sleep(INTERVAL_S)


if __name__ == "__main__":
    main()
