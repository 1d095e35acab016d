"""The README of the target programs lists each program once, and names tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from support.targets import TARGETS, index_of

from lint.finding import Fault

TESTS = TARGETS.parent


def faults(readme: str, targets: Path = TARGETS) -> Iterator[Fault]:
    """Yield targets that the README does not list in the section of their folder, and so on."""
    index = index_of(targets)
    listed = dict(_listed(readme))
    for name, paths in index.items():
        if len(paths) > 1:
            yield Fault(1, f"several files have the name {name}")
        if listed.get(name, (0, ""))[1] != paths[0].parent.name:
            yield Fault(1, f"{name} is not listed under {paths[0].parent.name}")
    for name, (line, _) in listed.items():
        if name not in index:
            yield Fault(line, f"no such target: {name}")
    yield from _unknown_tests(readme)


def _listed(readme: str) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the name of each target, with its line and the title of its section."""
    topic = ""
    for number, line in enumerate(readme.splitlines(), 1):
        if line.startswith("## "):
            topic = line.removeprefix("## ")
        elif row := re.match(r"\| `(\w+)` \|", line):
            yield row[1], (number, topic)


def _unknown_tests(readme: str) -> Iterator[Fault]:
    tests = {str(path.relative_to(TESTS).with_suffix("")) for path in TESTS.rglob("test_*.py")}
    for number, line in enumerate(readme.splitlines(), 1):
        for name in re.findall(r"`(\w+/test_\w+)`", line):
            if not {name, f"integration/{name}"} & tests:
                yield Fault(number, f"no such test: {name}")
