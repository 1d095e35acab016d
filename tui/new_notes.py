"""Which notes of snapshots the user has not read yet."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERS = re.compile(r"[\d.]+")


class NewNotes:
    """Returns each note once. Notes that differ only in numbers are one note."""

    def __init__(self) -> None:
        self._former_kinds: set[str] = set()

    def select(self, notes: Iterable[str]) -> list[str]:
        """Return those of ``notes`` that are new."""
        alike = {note: _NUMBERS.sub("#", note) for note in notes}
        new = [note for note, kind in alike.items() if kind not in self._former_kinds]
        self._former_kinds.update(alike.values())
        return new
