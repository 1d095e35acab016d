"""Healthy programs by the hundred, under load: every finding about them is a false alarm.

The exit status is 1 if there was a false alarm. The same seed runs the same programs in the same
order, with the same pauses before the scans.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from support.targets import Compiler

from false_alarms.many import Totals, chosen, run_all
from false_alarms.programs import all_healthy
from false_alarms.run import Result

#: The runs between two progress lines.
_PROGRESS_EVERY = 50


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    print(f"SEED={arguments.seed} RUNS={arguments.runs}", flush=True)
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LOCKTOP_CACHE"] = f"{directory}/names"
        programs = all_healthy(Compiler(Path(directory)))
        selected = chosen(programs, arguments.runs, arguments.seed)
        totals = run_all(selected, arguments.seed, arguments.keep, _Progress())
    _report(totals, time.monotonic() - start_s)
    return 1 if totals.with_false_findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="false_alarms", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("build/false-alarms"),
        help="directory for the snapshots of false alarms",
    )
    return parser.parse_args()


class _Progress:
    """Prints each false alarm at once, and a progress line now and then."""

    def __init__(self) -> None:
        self._runs = self._scans = 0

    def __call__(self, result: Result) -> None:
        self._runs += 1
        self._scans += result.scans
        if result.false_findings:
            print(f"{result.name} ({result.seed}): {'; '.join(result.false_findings)}", flush=True)
        if self._runs % _PROGRESS_EVERY == 0:
            print(f"{self._runs} runs, {self._scans} scans", flush=True)


def _report(totals: Totals, duration_s: float) -> None:
    for name, runs in sorted(totals.runs.items()):
        print(f"{runs:5} runs {totals.scans[name]:6} scans  {name}")
    print(
        f"{totals.runs.total()} runs of {len(totals.runs)} programs,"
        f" {totals.scans.total()} scans, {len(totals.with_false_findings)} runs with a false alarm,"
        f" {duration_s:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
