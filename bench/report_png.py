"""Draws the picture of a report in the README: the demonstration with its deadlock.

PYTHONPATH=tests python bench/report_png.py docs/report.png
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.chromium import browser
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program

WIDTH = 900
#: The sections of the picture end with this one.
LAST = "callers"
#: Seconds: the deadlock closes some seconds after the start.
WATCHED_S = 12


def report(page: Path) -> None:
    """Write the report of the demonstration."""
    program = [str(demo_program()), "--deadlock"]
    with Target(program, preload_environment()) as target:
        target.expect("ready")
        done = [COMMAND, "report", "-p", str(target.pid), "-d", str(WATCHED_S), "-o", str(page)]
        subprocess.run(done, check=True, env={**os.environ, "TZ": "UTC"})


def main(path: Path) -> None:
    """Draw the picture."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = Path(folder, "report.html")
        report(page)
        chromium.resize(WIDTH)
        chromium.prefer("light")
        chromium.open(page)
        chromium.send("Emulation.setScrollbarsHidden", hidden=True)
        bottom = f"document.getElementById('{LAST}').getBoundingClientRect().bottom"
        chromium.resize(WIDTH, round(chromium.evaluate(bottom)) + 20)
        chromium.wait_for("new Promise((done) => requestAnimationFrame(() => done(true)))")
        path.write_bytes(chromium.screenshot())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
