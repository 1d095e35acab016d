"""The memory map of a process: the file of an address."""

from __future__ import annotations

import mmap
import os
import re
from bisect import bisect_left, bisect_right

from msgspec import Struct

_DELETED = " (deleted)"
_OF_THE_KERNEL = frozenset({"[vdso]", "[vsyscall]"})
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mapping(Struct, frozen=True):
    """One line of /proc/PID/maps. ``path`` is foreign text; "" for anonymous memory."""

    start: int
    end: int
    executable: bool
    offset: int
    device: str  # "fe:00"
    inode: int
    path: str
    deleted: bool
    shared: bool = False  # other processes see what is written there
    writable: bool = False

    @property
    def file(self) -> tuple[str, int, str]:
        """The identity of the file: device, inode, path."""
        return self.device, self.inode, self.path

    @property
    def rights(self) -> tuple[bool, bool]:
        """The rights that differ between the parts of a module: executable, writable."""
        return self.executable, self.writable

    @property
    def is_file(self) -> bool:
        """Whether a file on a file system is mapped (not [stack], not anonymous memory)."""
        return self.inode != 0 and self.path.startswith("/")

    @property
    def is_of_the_kernel(self) -> bool:
        """Whether the kernel put code there, such as [vdso], which reads the clock."""
        return self.path in _OF_THE_KERNEL

    @property
    def is_code_of_a_file(self) -> bool:
        """Whether the file may have symbols: in a memfd a JIT compiler puts its code."""
        return self.is_file and not self.path.startswith("/memfd:")


def parse(data: bytes) -> list[Mapping]:
    """Return the mappings of /proc/PID/maps, by address; damaged lines are skipped."""
    mappings = (_parse_line(line) for line in data.splitlines())
    return sorted((m for m in mappings if m), key=lambda m: m.start)


def _parse_line(line: bytes) -> Mapping | None:
    fields = line.split(None, 5)
    try:
        start, _, end = fields[0].partition(b"-")
        path = os.fsdecode(_ESCAPE.sub(_unescape, fields[5])) if len(fields) > 5 else ""
        return Mapping(
            start=int(start, 16),
            end=int(end, 16),
            executable=b"x" in fields[1],
            offset=int(fields[2], 16),
            device=fields[3].decode("ascii"),
            inode=int(fields[4]),
            path=path.removesuffix(_DELETED),
            deleted=path.endswith(_DELETED),
            shared=b"s" in fields[1],
            writable=b"w" in fields[1],
        )
    except (ValueError, IndexError):
        return None


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


class AddressSpace:
    """The mappings of one moment."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self.mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        # Ten thousand stacks are as many mappings: no query walks over them.
        self._files = [mapping for mapping in mappings if mapping.is_file]
        self._file_starts = [mapping.start for mapping in self._files]
        self._with_code = frozenset(file.path for file in self._files if file.executable)
        self._files_before = _files_before(mappings)

    def find(self, address: int) -> Mapping | None:
        """Return the mapping of an address; None if there is none."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.mappings[index].end:
            return self.mappings[index]
        return None

    def base(self, mapping: Mapping) -> Mapping:
        """Return the first mapping of the module that a mapping belongs to.

        Offsets grow with addresses. Two parts of a small program may begin in its first page. If
        the lower one of them is larger than a page, or has equal rights, the module lacks it. The
        program mapped its own file to read it, as some do to name functions.
        """
        index = bisect_left(self._file_starts, mapping.start) - 1
        lowest = mapping
        while index >= 0:
            candidate = self._files[index]
            if candidate.offset > lowest.offset or candidate.file != mapping.file:
                break
            if not lowest.offset and (
                candidate.end - candidate.start > mmap.PAGESIZE or candidate.rights == lowest.rights
            ):
                break
            lowest = candidate
            index -= 1
        return lowest

    def has_code(self, path: str) -> bool:
        """Tell whether code of a file is mapped: data files lie between modules, too."""
        return path in self._with_code

    def file_before(self, address: int) -> Mapping | None:
        """Return the file mapping before an address, if there is no gap between them.

        The zeroed data of a module (.bss) is anonymous memory behind its initialised data.
        """
        index = bisect_right(self._starts, address) - 1
        return self._files_before[index] if index >= 0 else None


def _files_before(mappings: list[Mapping]) -> list[Mapping | None]:
    """Return for each mapping the file mapping that it is, or that it follows without a gap."""
    files: list[Mapping | None] = []
    file, end = None, -1
    for mapping in mappings:
        if mapping.is_file:
            file = mapping
        elif mapping.start != end:
            file = None
        files.append(file)
        end = mapping.end
    return files
