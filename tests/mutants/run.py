"""Many changes, some at a time, each alone in its copy of the tree."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from queue import SimpleQueue

from mutants.change import Change
from mutants.parts import NotCompiledError, Part
from mutants.tree import Tree


class Outcome(Enum):
    """Whether the unit tests notice a change."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NOT_COMPILED = "not compiled"


class Totals:
    """The number of changes with each outcome."""

    def __init__(self) -> None:
        self._counts: Counter[Outcome] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Count a change."""
        self._counts[outcome] += 1

    def share(self) -> float:
        """Return the share of changes that the tests notice, from 0 to 1."""
        noticed = self._counts[Outcome.KILLED] + self._counts[Outcome.TIMED_OUT]
        return noticed / max(1, noticed + self._counts[Outcome.SURVIVED])

    def __str__(self) -> str:
        counts = ", ".join(f"{self._counts[outcome]} {outcome.value}" for outcome in Outcome)
        return f"{counts}: {100 * self.share():.0f} % noticed"


def run_all(
    part: Part, changes: list[Change], count: int, directory: Path, jobs: int
) -> Iterator[tuple[Change, Outcome]]:
    """Yield the outcomes of the first ``count`` changes that compile."""
    trees: SimpleQueue[Tree] = SimpleQueue()
    for number in range(jobs):
        tree = Tree(directory / str(number))
        part.prepare(tree)
        if not number:
            part.check(tree)
        trees.put(tree)

    def run(change: Change) -> Outcome:
        tree = trees.get()
        try:
            return _outcome(part, tree, change)
        finally:
            tree.restore(change)
            trees.put(tree)

    left = list(changes)
    with ThreadPoolExecutor(jobs) as pool:
        while count and left:
            batch, left = left[:count], left[count:]
            for change, outcome in zip(batch, pool.map(run, batch), strict=True):
                count -= outcome is not Outcome.NOT_COMPILED
                yield change, outcome


def _outcome(part: Part, tree: Tree, change: Change) -> Outcome:
    tree.write(change)
    try:
        return Outcome.KILLED if part.notices(tree, change) else Outcome.SURVIVED
    except subprocess.TimeoutExpired:
        return Outcome.TIMED_OUT
    except NotCompiledError:
        return Outcome.NOT_COMPILED
