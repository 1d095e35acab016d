"""Runs once more, alone, what failed beside other tests; the second answer counts.

    python tests/repeat.py FIRST SECOND ...

Each argument is a directory that a run of pytest left. The directory has the cache of the run. The
file `status` has the exit status, and the file `environment` the variables. A run that ended in
another way than by failed tests is a failure at once. The last lines name the tests that needed
the repetition, which somebody has to mend first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: pytest's exit status if tests failed, and if all passed.
_FAILED, _PASSED = 1, 0


def failed_tests(directory: Path) -> list[str] | None:
    """Return the tests that failed in a run; None if the run itself failed."""
    try:
        status = int((directory / "status").read_text())
        if status == _PASSED:
            return []
        tests = list(json.loads((directory / "v/cache/lastfailed").read_text()))
    except (OSError, ValueError):
        return None
    return tests if status == _FAILED and tests else None


def main(directories: list[str]) -> int:
    """Repeat the failed tests of all runs; return the exit status of the whole."""
    runs: dict[Path, list[str]] = {}
    for directory in map(Path, directories):
        failed = failed_tests(directory)
        if failed is None:
            print(f"the run of {directory} did not end as it should", file=sys.stderr)
            return 1
        if failed:
            runs[directory] = failed
    if not runs:
        return 1  # then something else failed
    status = max(_repeat(directory, tests) for directory, tests in runs.items())
    verb = "needed a repetition" if status == 0 else "failed, some of them twice"
    names = [test for tests in runs.values() for test in tests]
    print(f"These tests {verb}; mend them first:", *names, sep="\n  ", flush=True)
    return status


def _repeat(directory: Path, tests: list[str]) -> int:
    print(f"once more, alone: {len(tests)} failed tests of {directory}", flush=True)
    variables = (directory / "environment").read_text().split()
    pytest = Path(sys.executable).with_name(
        "pytest"
    )  # as in the first run: ids may have its Python
    command = ["env", *variables, str(pytest), "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
