"""Lines of source files, read beside the keys: a file may be on a disk that does not answer.

The program names the files, so neither their number nor their contents can be trusted.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from locktop.collector.linux import regular_file

#: Larger files are no source. A file of /proc without a size is none, and a reading has effects.
_MAX_BYTES = 4 << 20
#: So many lines are kept, and so many characters of each.
_MAX_LINES, _MAX_CHARACTERS = 4096, 400


class SourceLines:
    """The lines that are known, and those that are wanted."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], str] = {}  # "": not to be read
        self._wanted: dict[tuple[str, int], None] = {}

    def line(self, file: str | None, number: int | None) -> str:
        """Return the line without blanks around it; "" if it is not known, or not yet."""
        if not file or not number or not os.path.isabs(file):
            return ""
        content = self._lines.get((file, number))
        if content is None:
            self._wanted[file, number] = None
        return content or ""

    @property
    def is_wanting(self) -> bool:
        """Whether a line is wanted."""
        return bool(self._wanted)

    def read(self, pid: int, started_s: float) -> bool:
        """Read the wanted lines; return whether any could be read. Any thread may call this.

        Args:
            pid: the process. If it has another file system, its paths name other files here.
            started_s: the start of the process, seconds since 1970. A file that changed later has
                perhaps other lines than the program.
        """
        wanted, self._wanted = list(self._wanted), {}
        if not _has_same_files(pid):
            self._lines |= dict.fromkeys(wanted[:_MAX_LINES], "")
            return False
        numbers: dict[str, set[int]] = {}
        for file, number in wanted[:_MAX_LINES]:
            numbers.setdefault(file, set()).add(number)
        if len(self._lines) + len(wanted) > _MAX_LINES:
            self._lines.clear()
        any_found = False
        for file, of_file in numbers.items():
            contents = _lines(Path(file), of_file, started_s)
            self._lines |= {(file, number): contents.get(number, "") for number in of_file}
            any_found = any_found or bool(contents)
        return any_found


def _has_same_files(pid: int) -> bool:
    """Whether a process has the file system of locktop, and no root directory of its own."""
    try:
        return os.path.samestat(
            os.stat(f"/proc/{pid}/ns/mnt"), os.stat("/proc/self/ns/mnt")
        ) and os.path.samestat(os.stat(f"/proc/{pid}/root"), os.stat("/"))
    except OSError:
        return False


def _lines(path: Path, numbers: Collection[int], started_s: float) -> dict[int, str]:
    """The lines of a regular file by number; none if it is no such file, or is missing.

    A line ends at a line feed alone, as in a compiler: a form feed ends none.
    """
    try:
        descriptor = regular_file.open_regular(
            path, owners=None, max_bytes=_MAX_BYTES, follow_link=True
        )
        with os.fdopen(descriptor, "rb") as opened:
            about = os.fstat(descriptor)
            if about.st_mtime > started_s:
                return {}
            text = opened.read(about.st_size)
    except (OSError, ValueError):
        return {}
    lines: dict[int, str] = {}
    start = 0
    for number in range(1, max(numbers) + 1):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        if number in numbers:
            lines[number] = text[start:end].decode(errors="replace").strip()[:_MAX_CHARACTERS]
        start = end + 1
        if start >= len(text):
            break
    return lines
