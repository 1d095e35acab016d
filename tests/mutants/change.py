"""A change of a few characters of one source file."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True):
    """Characters ``start`` to ``end`` of the file become ``new``."""

    path: str  # from the root of the repository
    start: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        """Return the text of the file after the change."""
        return text[: self.start] + self.new + text[self.end :]

    def line(self, text: str) -> int:
        """Return the number of the line where the change begins, from 1."""
        return text.count("\n", 0, self.start) + 1

    def described(self, text: str) -> str:
        """Return the first changed line before and after the change, without white space around."""
        before, after = self.lines(text)
        return f"{self.path}:{self.line(text)}\n    - {before}\n    + {after}"

    def lines(self, text: str) -> tuple[str, str]:
        """Return the whole lines that the change concerns, before and after it, each as one."""
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.end)
        last = len(text) if last < 0 else last
        after = text[first : self.start] + self.new + text[self.end : last]
        return _joined(text[first:last]), _joined(after)


def _joined(lines: str) -> str:
    return " ".join(lines.split())
