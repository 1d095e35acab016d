"""An ELF file in the memory of a process, for files that cannot be opened.

The kernel's vdso is in no file. A library that an update has replaced still runs in the process.
Only loaded parts can be read, so there are no sections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from locktop.collector.symbols.memory_map import Mapping


class MappedImage:
    """A source for ElfFile: the mappings of one file, or of the vdso."""

    def __init__(self, read: Callable[[int, int], bytes], mappings: Sequence[Mapping]) -> None:
        self._read = read
        self._mappings = mappings
        self.size = max(m.offset + m.end - m.start for m in mappings)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at an offset in the file; fewer where no more is mapped."""
        for mapping in self._mappings:
            inside = offset - mapping.offset
            if 0 <= inside < mapping.end - mapping.start:
                size = min(size, mapping.end - mapping.start - inside)
                return self._read(mapping.start + inside, size)
        return b""
