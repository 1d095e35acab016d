"""Draws docs/screen.svg: the real screen over the real demonstration, deadlocked.

python bench/screen_svg.py docs/screen.svg
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from plain_svg import plain_svg

from locktop.collector.model import Frame, Snapshot
from locktop.collector.sources.launched_program import LaunchedProgram
from locktop.tui.app import LocktopApp
from locktop.tui.commands.demo import demo_program
from locktop.tui.feed import PollerFeed, Publish

SIZE = (120, 40)
MAX_SCANS = 120  # half a second each


def _has_no_line(frame: Frame) -> bool:
    """Tell whether a frame is outside of the demonstration's source."""
    return frame.module != "locktop-demo" or frame.function == "_start"


class Watched(PollerFeed):
    """Sets ``complete`` at the first snapshot with a deadlock and with all names."""

    def start(self, publish: Publish, interval_s: float) -> None:
        self.loop, self.complete = asyncio.get_running_loop(), asyncio.Event()

        def and_scan(snapshot: Snapshot) -> None:
            publish(snapshot)
            frames = [f for stack in snapshot.stacks.values() for f in stack]
            named = all(f.function and (f.line or _has_no_line(f)) for f in frames)
            if snapshot.deadlocks and named and snapshot.duration_s > 6:
                self.loop.call_soon_threadsafe(self.complete.set)

        super().start(and_scan, interval_s)


async def draw(path: Path) -> None:
    """Start the demonstration, wait for its deadlock, export the screen."""
    program = str(demo_program())
    with LaunchedProgram(program, [program, "--deadlock"], output=os.devnull) as started:
        feed = Watched(started.source())
        app = LocktopApp(feed, "night", environ={})
        async with app.run_test(size=SIZE) as pilot:
            await asyncio.wait_for(feed.complete.wait(), MAX_SCANS / 2)
            await pilot.pause()
            await pilot.pause()
            svg = plain_svg(app, "locktop demo --deadlock")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg)


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1])))
