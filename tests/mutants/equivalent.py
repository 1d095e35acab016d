"""The changes after which the code does the same: no test can notice them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mutants.change import Change
from mutants.tree import ROOT

_FILE = Path(__file__).with_name("equivalent.toml")


class Equivalent(msgspec.Struct, frozen=True):
    """The lines of a change, as `Change.lines()` returns them, and why they do the same."""

    path: str
    before: str
    after: str
    reason: str

    def is_of(self, change: Change, text: str) -> bool:
        """Return whether this is the change; ``text``: the file before the change."""
        return self.path == change.path and change.lines(text) == (self.before, self.after)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    equivalent: list[Equivalent] = []


def equivalents() -> list[Equivalent]:
    """Return all of them.

    Raises:
        msgspec.ValidationError: the file has an error.
    """
    return msgspec.toml.decode(_FILE.read_bytes(), type=_Document).equivalent


def without_equivalent(changes: list[Change]) -> list[Change]:
    """Return the other changes."""
    by_path: dict[str, list[Equivalent]] = {}
    for one in equivalents():
        by_path.setdefault(one.path, []).append(one)
    texts = {path: (ROOT / path).read_text() for path in by_path}
    return [
        change
        for change in changes
        if not any(one.is_of(change, texts[change.path]) for one in by_path.get(change.path, ()))
    ]
