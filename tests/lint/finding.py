"""The results of checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """A wrong line of a text. Lines count from 1."""

    line: int
    message: str


class Finding(NamedTuple):
    """A fault, and the file below the root of the repository."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def in_file(path: Path, faults: Iterable[Fault]) -> Iterator[Finding]:
    """Yield the findings of one file."""
    return (Finding(path, *fault) for fault in faults)
