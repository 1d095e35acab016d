"""``locktop bench``: the cost of the library on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from locktop.collector.errors import LocktopError

NAME = "bench"
GROUP = "control"
HELP = "what the library costs on this machine"
DESCRIPTION = """\
Measures the cost of every lock and wait: without the library (unprepared), with a library that only
passes calls through (nop), and with the real library at each level, in turns. Prints a table.
Takes about a minute. With --contention: what fighting threads keep of their rate, at a grid of
points. `locktop bench profile`: what a profile of the program's own code costs, by its interval."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=("locks", "calls", "profile"),
        default="locks",
        help="locks and waits (default), function calls, or profiles by their interval",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as tables in Markdown")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="one short round, some seconds")
    effort.add_argument(
        "--full", action="store_true", help="8 threads too, longer runs: about ten minutes"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help="only these: primitives as in the table, or `trace`, the growth of the trace",
    )
    parser.add_argument(
        "--contention",
        action="store_true",
        help="a grid instead: how much of its rate a program keeps while threads fight for a lock",
    )
    parser.add_argument(
        "--beside",
        nargs="+",
        default=[],
        type=_named_library,
        metavar="NAME=LIBRARY",
        help="with --contention: measure these preload libraries too",
    )
    parser.add_argument(
        "--rounds", type=_rounds, metavar="N", help="5 by default; more rounds are more exact"
    )


def _rounds(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds from 1 to 1000")
    return number


def _named_library(text: str) -> tuple[str, Path]:
    name, _, library = text.partition("=")
    if not name or not Path(library).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LIBRARY with a library's file")
    return name, Path(library)


def execute(arguments: argparse.Namespace) -> int:
    """Run the benchmarks and print the table."""
    from msgspec.structs import replace

    from locktop.collector.extensions.bench import report, tables

    if arguments.what == "calls":
        return _measure_calls(arguments)
    if arguments.what == "profile":
        return _measure_profiles(arguments)
    if arguments.contention:
        return _measure_grid(arguments)
    effort = report.FULL if arguments.full else report.QUICK if arguments.quick else report.USUAL
    if arguments.rounds:
        effort = replace(effort, rounds=arguments.rounds)
    results = report.measure(
        effort, arguments.only, _show_progress if sys.stderr.isatty() else None
    )
    if arguments.json:
        import json

        print(json.dumps(report.json_object(results), indent=1))
    else:
        print(tables.markdown(results) if arguments.markdown else tables.text(results))
    return 0


def _measure_calls(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.bench import call_costs

    rounds, seconds = (1, 0.05) if arguments.quick else (11 if arguments.full else 5, 0.5)
    results = call_costs.measure(
        arguments.rounds or rounds, seconds, _show_progress if sys.stderr.isatty() else None
    )
    if arguments.json:
        import json

        print(json.dumps(call_costs.json_object(results), indent=1))
    else:
        print(call_costs.text(results, arguments.markdown))
    return 0


def _measure_grid(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.bench import contention, contention_tables

    rounds, seconds = (1, 0.01) if arguments.quick else (11 if arguments.full else 3, 0.1)
    grid = contention.measure(
        contention.points(arguments.only),
        arguments.rounds or rounds,
        seconds,
        arguments.beside,
        _show_progress if sys.stderr.isatty() else None,
    )
    if arguments.json:
        import json

        print(json.dumps(contention.json_object(grid), indent=1))
    else:
        form = contention_tables.markdown if arguments.markdown else contention_tables.text
        print(form(grid))
    return 0


def _measure_profiles(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.bench import profile_costs

    if arguments.contention or arguments.only or arguments.beside:
        raise LocktopError("bench profile takes neither --only nor --contention nor --beside")
    pairs = 2 if arguments.quick else (200 if arguments.full else 60)
    progress = _show_progress if sys.stderr.isatty() else None
    results = profile_costs.measure(arguments.rounds or pairs, progress)
    if arguments.json:
        import json

        print(json.dumps(profile_costs.json_object(results), indent=1))
    else:
        print((profile_costs.markdown if arguments.markdown else profile_costs.text)(results))
    return 0


def _show_progress(done: int, total: int) -> None:
    """Write the progress over one line of the terminal, and clear the line at the end."""
    text = f"measuring {done} of {total}" if done < total else ""
    print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)
