"""The lint finds targets that the README of the targets does not list."""

from __future__ import annotations

from pathlib import Path

from lint.target_list import faults

README = """# Targets

## deadlock

| `ring` | `deadlock/test_detection` |
| `gone` | `deadlock/test_nothing` |
"""


def test_targets_and_tests_that_are_not_there_are_found(tmp_path: Path) -> None:
    for name in ("deadlock/ring.c", "fork/child.c", "fork/twice.c", "idle/twice.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(f"{line}: {message}" for line, message in faults(README, tmp_path)) == [
        "1: child is not listed under fork",
        "1: several files have the name twice",
        "1: twice is not listed under fork",
        "6: no such target: gone",
        "6: no such test: deadlock/test_nothing",
    ]
