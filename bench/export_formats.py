"""Measures `locktop export` of an hour with many waits: CPU seconds, memory and bytes by format.

    PYTHONPATH=tests .venv/bin/python bench/export_formats.py [WAITS_A_SECOND]

The recording is that of bench/report_page.py, with fewer waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from report_page import SECONDS, write_recording
from support.tool import COMMAND

from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS, ExportContent

RATE = 55


def run(recording: Path, name: str, result: Path) -> tuple[float, int]:
    """Return the CPU seconds and the largest memory, in bytes, of one export."""
    command = [COMMAND, "export", str(recording), "--to", name, "-o", str(result)]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name}: status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main(rate: int) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "hour.locktop")
        write_recording(recording, rate)
        size = recording.stat().st_size / 1e6
        print(f"{rate * SECONDS:,} waits and holds, a recording of {size:.1f} MB\n")
        print("| Format | CPU | Memory | File |\n| --- | ---: | ---: | ---: |")
        for name, form in EXPORT_FORMATS.items():
            if form.content is ExportContent.STATE:
                continue
            result = Path(folder, f"x{form.suffix}")
            cpu_s, memory = run(recording, name, result)
            size = result.stat().st_size / 1e6
            print(f"| {name} | {cpu_s:.1f} s | {memory / 1e6:.0f} MB | {size:.1f} MB |")
            result.unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RATE)
