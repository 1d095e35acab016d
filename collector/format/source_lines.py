"""Lines of source files, read beside the keys: a file may be on a disk that does not answer."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

from locktop.collector.linux import regular_file

#: Larger files are no source; so many files are kept.
_MAX_BYTES, _MAX_FILES = 4 << 20, 64


class SourceLines:
    """The lines that are known, and the files that are wanted."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, list[str] | None] = OrderedDict()  # None: not to be read
        self._wanted: dict[str, None] = {}

    def line(self, file: str | None, number: int | None) -> str:
        """Return the line without blanks around it; "" if it is not known, or not yet."""
        if not file or not number or not os.path.isabs(file):
            return ""
        if file not in self._files:
            self._wanted[file] = None
            return ""
        lines = self._files[file]
        return lines[number - 1].strip() if lines is not None and number <= len(lines) else ""

    @property
    def is_wanting(self) -> bool:
        """Whether a file is wanted."""
        return bool(self._wanted)

    def read(self) -> bool:
        """Read the wanted files; return whether any could be read. Any thread may call this."""
        wanted, self._wanted = list(self._wanted), {}
        found = False
        for file in wanted:
            self._files[file] = _lines(Path(file))
            found = found or self._files[file] is not None
        while len(self._files) > _MAX_FILES:
            self._files.popitem(last=False)
        return found


def _lines(path: Path) -> list[str] | None:
    """The lines of a regular file; None if it is none, or is missing."""
    try:
        descriptor = regular_file.open_regular(
            path, owners=None, max_bytes=_MAX_BYTES, follow_link=True
        )
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read(_MAX_BYTES).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return None
