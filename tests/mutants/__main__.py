"""Changes the code at random, one change at a time, and shows which ones no unit test notices.

The exit status is 1 if the unit tests notice less than 90 of 100 changes. The same seed makes the
same changes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from mutants.equivalent import without_equivalent
from mutants.parts import parts
from mutants.run import Outcome, Totals, run_all
from mutants.tree import ROOT

_MIN_SHARE = 0.9


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    names = [arguments.part] if arguments.part else list(parts())
    results = [_run_part(name, arguments) for name in names]
    return 0 if all(totals.share() >= _MIN_SHARE for totals in results) else 1


def _run_part(name: str, arguments: argparse.Namespace) -> Totals:
    print(f"PART={name} SEED={arguments.seed} MUTANTS={arguments.mutants}", flush=True)
    start_s = time.monotonic()
    part = parts()[name]
    changes = without_equivalent(part.changes())
    random.Random(arguments.seed).shuffle(changes)
    del changes[: arguments.skip]
    totals = Totals()
    for change, outcome in run_all(
        part, changes, arguments.mutants, arguments.directory / name, arguments.jobs
    ):
        totals.add(outcome)
        if outcome is Outcome.SURVIVED or arguments.verbose:
            text = (ROOT / change.path).read_text()
            print(f"{outcome.value}: {change.described(text)}", flush=True)
    print(f"{name}: {totals}; {time.monotonic() - start_s:.0f} s", flush=True)
    return totals


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--part", choices=list(parts()), help="default: one after the other")
    parser.add_argument("--mutants", type=int, default=100, help="changes of each part")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--skip", type=int, default=0, help="changes of an earlier run")
    parser.add_argument("--jobs", type=int, default=2, help="changes that are tested at a time")
    parser.add_argument("--verbose", action="store_true", help="print also what was noticed")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "build/mutants", help="for copies of the tree"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
