"""The real app on a real terminal, controlled over a pipe; test_terminal.py runs this program.

Arguments: the descriptor of the commands, the descriptor of the answers, and the patience. The
patience is the time in seconds that the terminal has for the last output.

A command is a line. ``tick N`` publishes the large snapshot of that tick. ``calls N`` publishes a
snapshot with many callers. ``hostile`` publishes one with wide and combining characters. ``same``
publishes the last snapshot again. ``settle`` only waits. The child answers with a line of JSON as
soon as the writer has all output of the command. The answer has the text that the screen is to
show, and the number of collections of all garbage. After ``memory`` it also has the number of
strips that exist. After ``mark`` a sign stands in the first cell, behind all output, and the answer
has the sign. After the answer to ``stick`` the event loop is busy for ever.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import IO
from unittest import mock

from msgspec.structs import replace
from parent_watch import end_with_parent
from support.feed import HandFeed, text_of
from textual._context import active_app
from textual.pilot import Pilot
from textual.strip import Strip
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.screens.past_travel import PastTravel
from locktop.tui.terminal import driver
from locktop.tui.themed_app import run_app

#: The snapshot of each command, by the tick.
MADE: dict[str, Callable[[int], Snapshot]] = {
    "tick": lambda tick: scenarios.many(tick=tick),
    "calls": lambda tick: scenarios.calls(tick=tick),
    "hostile": lambda _: scenarios.hostile(),
}


async def settle(app: LocktopApp) -> str:
    """Wait until all is painted; return the text of the screen."""
    active_app.set(app)  # the pilot paints, and so does text_of()
    pilot = Pilot(app)
    for _ in range(3):
        await pilot.pause()
    return text_of(app)


def answer_faults(
    obey: Callable[[asyncio.AbstractEventLoop], None],
    loop: asyncio.AbstractEventLoop,
    answers: IO[str],
) -> None:
    """Obey commands. A fault is the last answer, which is no JSON, so the test fails at once."""
    try:
        obey(loop)
    except Exception:
        answers.write(traceback.format_exc())
    answers.close()


def mark(app: LocktopApp, sign: str) -> None:
    """Write a sign behind all output. The app does not know of it, so it stays until ``^L``."""
    while not app.meter.drained:
        time.sleep(0.001)
    assert sys.__stdout__ is not None
    os.write(sys.__stdout__.fileno(), f"\x1b7\x1b[1;1H\x1b[0m{sign}\x1b8".encode())


#: The time of the first snapshot, nanoseconds since 1970.
BEGAN_NS = 1_800_000_000_000_000_000
TICK_NS = 500_000_000


def main() -> None:
    end_with_parent()
    driver.PATIENCE_S = float(sys.argv[3])
    commands = os.fdopen(int(sys.argv[1]), "r")
    answers = os.fdopen(int(sys.argv[2]), "w", buffering=1)
    ticks = [0]
    feed = HandFeed(scenarios.many())
    # Two snapshots a second, however busy the machine is. The graphs go by the same clock.
    app = LocktopApp(feed, "night", now=lambda: ticks[0] / 2)
    clock = mock.patch.object(PastTravel, "now_ns")
    clock.start().side_effect = lambda: BEGAN_NS + ticks[0] * TICK_NS

    stuck = threading.Event()

    async def stick() -> None:
        stuck.set()
        while True:
            pass

    def obey(loop: asyncio.AbstractEventLoop) -> None:
        last, signs = scenarios.many(), itertools.cycle("@%")
        for line in commands:
            word, *rest = line.split()
            if rest:
                ticks[0] = int(rest[0])
            if word in MADE:
                last = MADE[word](ticks[0])
            if word in (*MADE, "same"):
                feed.publish(replace(last))
            text = asyncio.run_coroutine_threadsafe(settle(app), loop).result()
            answer: dict[str, object] = {
                "queued": app.meter.queued,
                "interval_s": feed.interval_s,
                "text": text,
                "collections": gc.get_stats()[2]["collections"],
            }
            if word == "memory":
                answer["strips"] = sum(isinstance(one, Strip) for one in gc.get_objects())
            if word == "mark":
                answer["sign"] = next(signs)
                mark(app, answer["sign"])
            if word == "stick":
                asyncio.run_coroutine_threadsafe(stick(), loop)
                stuck.wait()
            answers.write(json.dumps(answer) + "\n")

    def listen() -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=answer_faults, args=(obey, loop, answers), daemon=True).start()

    app.call_later(listen)
    sys.exit(run_app(app))


main()
