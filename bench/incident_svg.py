"""Draws the pictures of docs/guide/: the real screen over the programs of the incidents.

PYTHONPATH=tests python bench/incident_svg.py docs

A picture shows a screen of 80x24 after the keys of the incident. The test of the incidents holds
that these keys lead to the answer.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from plain_svg import plain_svg
from support.feed import text_of
from support.incidents import INCIDENTS, Incident, started
from support.targets import Compiler
from textual.pilot import Pilot

from locktop.collector.sources.attach import attach
from locktop.tui.app import LocktopApp
from locktop.tui.feed import PollerFeed

SIZE = (80, 24)
PATIENCE_S = 60.0


async def _until(app: LocktopApp, pilot: Pilot[int], *texts: str) -> None:
    """Wait until the screen shows all texts."""
    end = time.monotonic() + PATIENCE_S
    while not all(text in text_of(app) for text in texts):
        if time.monotonic() > end:
            raise SystemExit(f"never seen: {texts}\n{text_of(app)}")
        await pilot.pause(0.1)


async def svg_of(incident: Incident, pid: int) -> str:
    """Return the picture of one incident as SVG."""
    app = LocktopApp(PollerFeed(attach(pid)), "night", environ={})
    async with app.run_test(size=SIZE) as pilot:
        await _until(app, pilot, incident.headline)
        await pilot.press(*incident.keys)
        await _until(app, pilot, *incident.answer)
        await pilot.pause()
        return plain_svg(app, f"locktop -p {pid}")


def main(folder: Path) -> None:
    """Draw all pictures."""
    with tempfile.TemporaryDirectory() as built:
        compiler = Compiler(Path(built))
        for incident in INCIDENTS:
            with started(incident, compiler) as target:
                svg = asyncio.run(svg_of(incident, target.pid))
            (folder / f"incident-{incident.name}.svg").write_text(svg)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
