"""``locktop list``: the processes that run with the library."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locktop.collector.sources.discover import Candidate
    from locktop.collector.sources.stuck_survey import StuckThreads

NAME = "list"
GROUP = "look"
HELP = "processes with the library, those with stuck threads first"
DESCRIPTION = """\
Lists the processes that run with the library, which locktop watches exactly. With --all the
command also lists the other processes, and why each of them runs without the library. locktop can
only sample these.

Each process is scanned shortly for threads that wait for locks. Whoever is deadlocked or may be
stuck comes first, processes of one thread come last."""

#: Share of a CPU that the scans take: nobody waits for long, and other programs go on.
_SHARE = 0.5
#: Seconds after which the scans end, and the other processes stay without figures.
_LONGEST_S = 5.0
_STATE_WIDTH = len("possible deadlock")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="also those without the library")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from locktop.collector.sources.discover import candidates
    from locktop.collector.sources.stuck_survey import rank

    processes = candidates()
    visible = [c for c in processes if c.preloaded or arguments.all]
    stuck = _survey(visible)
    visible.sort(key=lambda candidate: rank(candidate, stuck.get(candidate.pid)))
    if arguments.json:
        _print_json(visible, stuck)
        return 0
    for line in table(visible, stuck):
        print(line)
    hidden = len(processes) - len(visible)
    if hidden and sys.stderr.isatty():
        print(f"{hidden} more run without the library: `locktop list --all`", file=sys.stderr)
    return 0


def _survey(visible: Sequence[Candidate]) -> dict[int, StuckThreads]:
    """Return how much the threads of these processes wait, by pid."""
    import time

    from locktop.collector.sources.stuck_survey import survey_all

    stuck, until = {}, time.monotonic() + _LONGEST_S
    for step in survey_all(visible, _SHARE):
        if step.stuck is not None:
            stuck[step.pid] = step.stuck
        if time.monotonic() + step.pause_s > until:
            break
        time.sleep(step.pause_s)
    return stuck


def _print_json(visible: Sequence[Candidate], stuck: Mapping[int, StuckThreads]) -> None:
    import json

    from msgspec import to_builtins

    unknown = {"waiting": None, "longest_s": None, "deadlock": None, "is_lower_bound": None}
    rows = [
        to_builtins(candidate) | to_builtins(stuck.get(candidate.pid, unknown))
        for candidate in visible
    ]
    print(json.dumps(rows, indent=1))


def table(visible: Sequence[Candidate], stuck: Mapping[int, StuckThreads]) -> list[str]:
    """The list as lines of text."""
    from locktop.collector.render.words.units import DURATION_WIDTH, lasting

    widest = max([len(candidate.user) for candidate in visible] + [4])
    heads = f"{'USER':<{widest}} THREADS WAITING LONGEST"
    lines = [f"{'PID':>7} {heads} {'STATE':<{_STATE_WIDTH}} COMMAND"]
    for candidate in visible:
        threads = stuck.get(candidate.pid)
        waiting = str(threads.waiting) if threads is not None else "-"
        longest = "-"
        if threads is not None and threads.longest_s:
            longest = lasting(threads.longest_s, threads.is_lower_bound, DURATION_WIDTH)
        state = threads.state if threads is not None else ""
        state = state or ("ready" if candidate.preloaded else "no library")
        why = "" if candidate.preloaded else f"  -- {candidate.why}"
        lines.append(
            f"{candidate.pid:>7} {candidate.user:<{widest}} {candidate.threads:>7} {waiting:>7}"
            f" {longest:>7} {state:<{_STATE_WIDTH}} {candidate.command or candidate.comm}{why}"
        )
    return lines
