"""A screen over time keeps its picture while it reads a newer part of the past."""

from __future__ import annotations

import threading

from msgspec.structs import replace
from unit.builders.time_lines import at, relay
from unit.tui.screens.test_timeline import live

from locktop.collector.model import WaitRecord
from locktop.tui.screens.timeline import TimelineScreen


async def test_the_newest_moment_is_drawn_only_when_it_was_read() -> None:
    past, may_read = relay(), threading.Event()
    async with live(past) as screen:
        await screen.open("T")
        before, read, view = screen.lines[2:], past.records, screen.app.screen
        assert isinstance(view, TimelineScreen)

        def slowly(from_ns: int, to_ns: int) -> list[WaitRecord]:
            if threading.current_thread() is not threading.main_thread():
                may_read.wait(60.0)
            return read(from_ns, to_ns)

        past.records = slowly  # type: ignore[method-assign]
        newest = past.snapshots[at(10_500)] = replace(past.snapshot_at(at(0)), duration_s=5000.0)
        try:
            screen.clock[0] += 10.0
            view.show_snapshot(newest)
            await screen.pilot.pause()
            assert "reading" in screen.status
            assert screen.lines[2:] == before, "an empty picture would deny the waits"
        finally:
            may_read.set()
        await screen.until(screen.has_read)
