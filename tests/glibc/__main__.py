"""All of glibc's thread tests, with the library and without: each result must be the same.

The exit status is 1 if a test has a result with the library that it never has without.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

from glibc.build import CompilerError, NoSourceError, build
from glibc.run import Comparison, Runner, library_environment
from locktop.collector.sources.levels import NAMES as LEVELS

#: The report lists a run with the library that takes this many times as long plus one second.
SLOWER = 1.5


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell's "&" makes its processes ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    try:
        built = build(arguments.names or None)
    except (NoSourceError, CompilerError) as error:
        print(f"glibc-tests: {error}", file=sys.stderr)
        return 2
    for name, reason in built.errors.items():
        print(f"{name}: does not compile: {reason}")
    with library_environment(arguments.level, arguments.order) as library:
        comparisons = _compare_all(Runner(built.programs, library), list(built.programs), arguments)
    return _report(arguments.level, comparisons)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="glibc-tests", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TEST", help="tst-mutex1, ...; all if none")
    parser.add_argument("--level", choices=LEVELS, default="contended")
    parser.add_argument("--order", choices=("0", "1", "mark"), default="1")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), metavar="N")
    return parser.parse_args()


def _compare_all(
    runner: Runner, names: list[str], arguments: argparse.Namespace
) -> list[Comparison]:
    """Run many tests at once, since most of them sleep; run those that differ again alone."""
    pool = ThreadPoolExecutor(arguments.jobs)
    found = []
    try:
        for run in as_completed([pool.submit(runner.compare, name) for name in names]):
            found.append(run.result())
            _show(found[-1])
        return [runner.again(run) if run.differs else run for run in found]
    finally:  # also after a signal
        pool.shutdown(wait=False, cancel_futures=True)
        runner.stop()


def _show(run: Comparison) -> None:
    for unprepared, watched in zip(run.unprepared, run.watched, strict=True):
        mark = "" if unprepared.result == watched.result else "  <- differs"
        print(
            f"{run.name:34} {unprepared.result:16} {unprepared.seconds:6.1f} s    "
            f"{watched.result:16} {watched.seconds:6.1f} s{mark}",
            flush=True,
        )


def _report(level: str, comparisons: list[Comparison]) -> int:
    slower = [
        run
        for run in comparisons
        if min(outcome.seconds for outcome in run.watched)
        > SLOWER * max(outcome.seconds for outcome in run.unprepared) + 1
    ]
    again = [run for run in comparisons if len(run.unprepared) > 1]
    differ = [run for run in comparisons if run.differs]
    for title, runs in (
        ("took longer with the library, in this one run", slower),
        ("run again, alone", again),
    ):
        print(f"\n{title}: {len(runs) or 'none'}")
        for run in runs:
            _show(run)
    results = Counter(run.unprepared[0].result for run in comparisons)
    print(f"\n{len(comparisons)} tests, without the library: {dict(results.most_common())}")
    print(
        f"with the library ({level}) another result: {', '.join(r.name for r in differ) or 'none'}"
    )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
