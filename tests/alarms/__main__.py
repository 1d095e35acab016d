"""Healthy programs by the hundred, under load: whatever is told of them is a false alarm.

Exit status 1 when there was one. With the same seed the same programs run in the same order, and
are looked at after the same pauses.
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

from alarms.many import Sums, chosen, run_all
from alarms.programs import all_healthy
from alarms.run import Ran

_TOLD_EVERY = 50


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    print(f"SEED={arguments.seed} RUNS={arguments.runs}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as built:
        os.environ["LOCKTOP_CACHE"] = f"{built}/names"
        programs = all_healthy(Compiler(Path(built)))
        some = chosen(programs, arguments.runs, arguments.seed)
        sums = run_all(some, arguments.seed, arguments.keep, _Teller())
    _report(sums, time.monotonic() - begun)
    return 1 if sums.alarmed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="alarms", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument(
        "--keep", type=Path, default=Path("build/alarms"), help="where snapshots go"
    )
    return parser.parse_args()


class _Teller:
    """Tells of each alarm at once, and now and then how far it has come."""

    def __init__(self) -> None:
        self._runs = self._scans = 0

    def __call__(self, ran: Ran) -> None:
        self._runs += 1
        self._scans += ran.scans
        if ran.alerts:
            print(f"{ran.name} ({ran.seed}): {'; '.join(ran.alerts)}", flush=True)
        if self._runs % _TOLD_EVERY == 0:
            print(f"{self._runs} runs, {self._scans} looks", flush=True)


def _report(sums: Sums, took_s: float) -> None:
    for name, runs in sorted(sums.runs.items()):
        print(f"{runs:5} runs {sums.scans[name]:6} looks  {name}")
    print(
        f"{sums.runs.total()} runs of {len(sums.runs)} programs, {sums.scans.total()} looks,"
        f" {len(sums.alarmed)} runs with an alarm, {took_s:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
