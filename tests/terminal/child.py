"""The real app on a real terminal, told over a pipe what to publish; run by test_terminal.py.

A line on the control pipe is a command: ``tick N`` publishes the large picture of that tick,
``calls N`` one with many callers, ``same`` publishes the last one again, ``settle`` only waits.
Each is answered, when all that it caused was handed to the terminal's writer, with one line of
JSON; in it is what the screen is meant to show.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

from msgspec.structs import replace
from support.feed import HandFeed, text_of
from textual.pilot import Pilot
from unit.builders import scenarios

from locktop.tui.app import LocktopApp
from locktop.tui.themed_app import run_app


def main() -> None:
    commands = os.fdopen(int(sys.argv[1]), "r")
    answers = os.fdopen(int(sys.argv[2]), "w", buffering=1)
    ticks = [0]
    feed = HandFeed(scenarios.many())
    # Two pictures a second, whatever the machine is busy with.
    app = LocktopApp(feed, "night", now=lambda: ticks[0] / 2)

    async def settle() -> None:
        pilot = Pilot(app)
        for _ in range(3):
            await pilot.pause()

    def obey(loop: asyncio.AbstractEventLoop) -> None:
        last = scenarios.many()
        for line in commands:
            word, *rest = line.split()
            if word == "tick":
                ticks[0] = int(rest[0])
                last = scenarios.many(tick=ticks[0])
            if word == "calls":
                ticks[0] = int(rest[0])
                last = scenarios.calls(tick=ticks[0])
            if word in ("tick", "calls", "same"):
                feed.publish(replace(last))
            asyncio.run_coroutine_threadsafe(settle(), loop).result()
            answer = {
                "queued": app.meter.queued,
                "interval_s": feed.interval_s,
                "text": text_of(app),
            }
            answers.write(json.dumps(answer) + "\n")

    def listen() -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=obey, args=(loop,), daemon=True).start()

    app.call_later(listen)
    sys.exit(run_app(app))


main()
