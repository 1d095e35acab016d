"""Debug information beside the program: .dwo files, or one .dwp file with all of them."""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator, Sequence

from locktop.collector.symbols.dwarf import abbrevs as dw
from locktop.collector.symbols.dwarf.sections import DebugSections
from locktop.collector.symbols.dwarf.units import COMPILED, CompileUnit, UnitPart, Units
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.safe_open import open_regular

_MAX_UNITS = 1 << 20
_MAX_COLUMNS = 64
#: Columns of the index in a .dwp file (DWARF 5, 7.3.5.3); those of DWARF 4 have the same numbers.
_INFO, _ABBREV, _STR_OFFSETS, _RNGLISTS = 1, 3, 6, 8


class SplitFiles:
    """Finds the split units of a program.

    Args:
        path: The path of the program in the first of ``roots``.
        roots: Directories that paths are relative to.
    """

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._path = path
        self._roots = roots
        self._packages: list[Units] | None = None

    def find(self, skeleton: CompileUnit) -> CompileUnit | None:
        """Return the unit with the entries that a skeleton lacks; None if its file is not here."""
        for path in self._paths(skeleton):
            for units in self._open(path):
                for unit in units:
                    if unit.type in COMPILED and unit.id == skeleton.id:
                        return CompileUnit(units, unit.offset, skeleton)
        if self._packages is None:
            self._packages = list(self._open(f"{self._path}.dwp"))
        for package in self._packages:
            part = _part(package.sections, skeleton.id)
            if part is not None:
                return CompileUnit(package, part.info, skeleton, part)
        return None

    def _paths(self, skeleton: CompileUnit) -> list[str]:
        name, directory = skeleton.dwo_name, ""
        if dw.COMP_DIR in skeleton.top:
            directory = skeleton.string(skeleton.top[dw.COMP_DIR]).decode(
                "utf-8", "surrogateescape"
            )
        beside = posixpath.join(posixpath.dirname(self._path), posixpath.basename(name))
        return [posixpath.join(directory, name), beside]

    def _open(self, path: str) -> Iterator[Units]:
        for root in self._roots:
            file = open_regular(root + path) if path.startswith("/") else None
            if file is not None:
                try:
                    yield Units(DebugSections(ElfFile(file), ".dwo"))
                except ValueError:  # no ELF file
                    continue


def _part(sections: DebugSections, unit_id: int) -> UnitPart | None:
    """Return the offsets of a unit's parts in a .dwp file; None if the unit is not there."""
    data = sections.read("cu_index", 0, sections.size("cu_index"))
    version, columns, units, slots = struct.unpack_from("<IIII", data)
    if version & 0xFFFF not in (2, 5) or columns > _MAX_COLUMNS or max(units, slots) > _MAX_UNITS:
        raise ValueError("an index of split units is damaged")
    ids = struct.unpack_from(f"<{slots}Q", data, 16)
    rows = struct.unpack_from(f"<{slots}I", data, 16 + 8 * slots)
    table = 16 + 12 * slots
    kinds = struct.unpack_from(f"<{columns}I", data, table)
    row = next((rows[n] for n in range(slots) if ids[n] == unit_id and rows[n]), 0)
    if not row:
        return None
    offsets = struct.unpack_from(f"<{columns}I", data, table + 4 * columns * row)
    offset_by_kind = dict(zip(kinds, offsets, strict=True))
    return UnitPart(
        offset_by_kind.get(_INFO, 0),
        offset_by_kind.get(_ABBREV, 0),
        offset_by_kind.get(_STR_OFFSETS, 0),
        offset_by_kind.get(_RNGLISTS, 0),
    )
