"""The memory of a live screen, which draws other lines at each scan.

The tests take some seconds each; `make soak MINUTES=30` watches the screen for so long.
"""

from __future__ import annotations

import os
import time
from functools import partial
from statistics import median

import psutil
from support.pty_tool import PtyTool
from support.terminal import LONG_ENOUGH_S, opened_terminal
from support.tool import COMMAND

MINUTES = float(os.environ.get("LOCKTOP_SOAK_MINUTES", "0.15"))
#: A long run allows so many bytes an hour, after the first third.
_GROWTH_AN_HOUR = 5 << 20
#: Caches fill in a short run, and samples vary.
_MARGIN = 3 << 20
_MAX_IN_A_SHORT_RUN = 64 << 20
#: The caches of the lists, of the details and of the lines around them.
_MAX_STRIPS = 10_000


def test_the_screen_releases_the_lines_that_it_no_longer_shows() -> None:
    """Each strip refers to itself, and only a collection of all garbage ends an old one."""
    with opened_terminal() as terminal:
        before = terminal.tell("settle")["collections"]
        deadline = time.monotonic() + LONG_ENOUGH_S
        answer, tick = {"collections": before}, 0
        while answer["collections"] < before + 2:
            assert time.monotonic() < deadline, f"no collection in {tick} frames: {answer}"
            tick += 1
            answer = terminal.tell(f"tick {tick}")
        assert terminal.tell("memory")["strips"] <= _MAX_STRIPS


def _has_more(tool: PtyTool, mark: int, _: str) -> bool:
    return tool.received > mark


def test_the_memory_of_a_live_screen_stays() -> None:
    with PtyTool([COMMAND, "--rate", "10", "--history", "1M", "demo"]) as tool:
        tool.shows("Locks")
        process = psutil.Process(tool.process.pid)  # `setsid` has become locktop
        end, samples = time.monotonic() + 60 * MINUTES, [process.memory_info().rss]
        while time.monotonic() < end:
            mark = tool.received
            # A frame, and not a time alone, separates two samples.
            tool.until(partial(_has_more, tool, mark), "another frame")
            time.sleep(0.2)
            samples.append(process.memory_info().rss)
        tool.press("qy")
        assert tool.wait() == 0
    third = len(samples) // 3
    middle, last = median(samples[third : 2 * third]), median(samples[2 * third :])
    hours = MINUTES / 60 / 3  # between the middles of the two thirds
    print(f"{len(samples)} samples, from {samples[0]:,} bytes: {middle:,}, then {last:,}")
    if MINUTES >= 10:
        assert last - middle <= _GROWTH_AN_HOUR * hours + _MARGIN
    else:
        assert last - samples[0] <= _MAX_IN_A_SHORT_RUN
