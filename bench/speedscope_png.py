"""Draws the picture of speedscope in docs/hand-over.md: the waits of the demonstration.

Needs npm, which brings the page of speedscope, and chromium.

PYTHONPATH=tests python bench/speedscope_png.py docs/speedscope.png
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from support import speedscope
from support.chromium import browser
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program

WIDTH, HEIGHT = 900, 420
#: Seconds that the demonstration runs before.
WATCHED_S = 8


def main(path: Path) -> None:
    """Draw the picture."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        file = Path(folder, "waits.speedscope.json")
        with Target([str(demo_program())], preload_environment()) as target:
            target.expect("ready")
            command = [COMMAND, "export", "-p", str(target.pid), "-d", str(WATCHED_S)]
            subprocess.run([*command, "--to", "speedscope", "-o", str(file)], check=True)
        chromium.resize(WIDTH, HEIGHT)
        chromium.prefer("light")
        speedscope.show(chromium, file, Path(folder))
        # "Left Heavy": the longest waits are at the left.
        chromium.press("2")
        chromium.wait_for("new Promise((done) => setTimeout(() => done(true), 1000))")
        path.write_bytes(chromium.screenshot())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
