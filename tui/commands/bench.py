"""``locktop bench``: what the library costs on this machine."""

from __future__ import annotations

import argparse
import sys

NAME = "bench"
HELP = "what the library costs on this machine"
DESCRIPTION = """\
Runs a small benchmark without the library, with one that only passes calls through, and with the
real one, in one run, and prints the costs beside each other."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")
    parser.add_argument(
        "--rounds", type=_rounds, default=5, metavar="N", help="default 5; more are more exact"
    )


def _rounds(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds from 1 to 1000")
    return number


def execute(arguments: argparse.Namespace) -> int:
    """Run it and print the table."""
    from locktop.collector import bench

    rows = bench.run(arguments.rounds, progress=_tell if sys.stderr.isatty() else None)
    if arguments.json:
        import json

        print(json.dumps(bench.as_json(rows), indent=1))
    else:
        print(bench.markdown(rows) if arguments.markdown else bench.table(rows))
    return 0


def _tell(done: int, of: int) -> None:
    """One line on the terminal that is written over, and gone at the end."""
    text = f"measuring {done} of {of}" if done < of else ""
    print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)
