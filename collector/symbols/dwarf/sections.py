"""The debug sections of one file, read in pieces: a large program has hundreds of megabytes.

Numbers are little-endian, as on all supported machines; a big-endian file seems to have no
sections.
"""

from __future__ import annotations

from locktop.collector.symbols.elf.file import ElfFile, Section

_WINDOW = 64 << 10  # bytes of the longest list, table or string
_READ_SIZE = 1 << 20


class DebugSections:
    """The bytes of the sections ``.debug_NAME``, or ``.debug_NAME`` plus ``suffix``, by NAME.

    An offset outside of a section raises ValueError.
    """

    def __init__(self, file: ElfFile, suffix: str = "") -> None:
        self._file = file
        self._suffix = suffix
        self._sections: dict[str, Section | None] = {}
        self._sizes: dict[str, int] = {}
        self._unpacked: dict[str, bytes] = {}
        self._windows: dict[str, tuple[int, bytes]] = {}

    def size(self, name: str) -> int:
        """Return the size of a section's unpacked content in bytes; 0 if there is no section."""
        size = self._sizes.get(name)
        if size is None:
            section = self._section(name)
            size = self._sizes[name] = self._file.size(section) if section is not None else 0
        return size

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at ``offset``."""
        section = self._section(name)
        if section is None:
            raise ValueError(f"there is no .debug_{name}")
        if not self._file.is_compressed(section):
            return self._file.part(section, offset, size)
        if name not in self._unpacked:
            self._unpacked[name] = self._file.data(section)
        data = self._unpacked[name][offset : offset + size]
        if min(offset, size) < 0 or len(data) < size:
            raise ValueError(f".debug_{name} is cut off")
        return data

    def window(self, name: str, offset: int) -> tuple[bytes, int]:
        """Return bytes, and the index of ``offset`` in them; 64 KB follow if there are as many."""
        start, data = self._windows.get(name, (0, b""))
        size = self.size(name)
        if not start <= offset <= offset + min(_WINDOW, size - offset) <= start + len(data):
            if not 0 <= offset < size:
                raise ValueError(f"{offset} is not in .debug_{name}")
            start, data = offset, self.read(name, offset, min(_READ_SIZE, size - offset))
            self._windows[name] = start, data
        return data, offset - start

    def string(self, name: str, offset: int) -> bytes:
        """Return the string that begins at ``offset``."""
        data, start = self.window(name, offset)
        return data[start : data.index(0, start)]

    def number(self, name: str, offset: int, size: int) -> int:
        """Return the number of ``size`` bytes at ``offset``."""
        data, start = self.window(name, offset)
        if start + size > len(data):
            raise ValueError(f".debug_{name} is cut off")
        return int.from_bytes(data[start : start + size], "little")

    def release_memory(self) -> None:
        """Release what was read; it can be read again."""
        self._unpacked.clear()
        self._windows.clear()

    def _section(self, name: str) -> Section | None:
        if name not in self._sections:
            # The index of a file that holds many split units has a name of its own.
            suffix = "" if name == "cu_index" else self._suffix
            titles = (f".debug_{name}{suffix}", f".zdebug_{name}{suffix}")
            sections = (self._file.section(title) for title in titles)
            content = (s for s in sections if s is not None and s.has_content)
            self._sections[name] = next(content, None) if self._file.little_endian else None
        return self._sections[name]
