"""Separate debug files: symbols and debug information that were stripped off a program.

The search is in the target's root and then in ours, in the directories that gdb uses. The build id
comes first, then the name in `.gnu_debuglink`. No server (debuginfod) is queried: the tool opens no
connection.
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator, Sequence

from msgspec import Struct

from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.safe_open import OpenFile, open_regular

_DEBUG = "/usr/lib/debug"
_CHUNK = 1 << 20
_MAX_LINK = 4096


class DebugFile(Struct, frozen=True):
    """An opened debug file."""

    elf: ElfFile
    file: OpenFile


def find(elf: ElfFile, path: str, roots: Sequence[str]) -> DebugFile | str | None:
    """Return the debug file of a program or library.

    Args:
        elf: The program or library.
        path: Its path in the first of ``roots``.
        roots: Directories that are searched.

    Returns:
        The debug file; a line for the user if there is only one of another build; None if there
        is none.
    """
    refused = None
    for name, checksum in _candidates(elf, path):
        for root in roots:
            debug = _open_debug_file(root + name)
            if debug is None:
                continue
            if _has_build_id(debug, elf.build_id, checksum):
                return debug
            refused = f"{name} is of another build than {path}: not used"
    return refused


def supplement(elf: ElfFile, file: OpenFile, roots: Sequence[str]) -> ElfFile | None:
    """Return the file with the DWARF that ``elf`` shares (made by dwz); None if there is none."""
    try:
        link = elf.content(".gnu_debugaltlink") or b""
        name, _, number = link[:_MAX_LINK].partition(b"\0")
        build_id, path = number.hex(), posixpath.join(file.directory(), name.decode())
    except (OSError, ValueError):
        return None
    for candidate in (*_build_id_paths(build_id), path):
        for root in roots if build_id else ():
            other = _open_debug_file(root + candidate)
            if other is not None and other.elf.build_id == build_id:
                return other.elf
    return None


def _candidates(elf: ElfFile, path: str) -> Iterator[tuple[str, int | None]]:
    """Yield the paths where a debug file may be, each with the checksum that it must have."""
    for candidate in _build_id_paths(elf.build_id):
        yield candidate, None
    link = _debug_link(elf)
    if link is not None:
        name, checksum = link
        directory = posixpath.dirname(path)
        for parent in (directory, f"{directory}/.debug", _DEBUG + directory):
            yield f"{parent}/{name}", checksum


def _build_id_paths(build_id: str) -> list[str]:
    return [f"{_DEBUG}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"] if len(build_id) > 2 else []


def _debug_link(elf: ElfFile) -> tuple[str, int] | None:
    try:
        data = (elf.content(".gnu_debuglink") or b"")[:_MAX_LINK]
        name = data[: data.index(b"\0")].decode()
        checksum = elf.number(data, len(name.encode()) + 4 & ~3)
    except ValueError:
        return None
    return (name, checksum) if name and "/" not in name else None


def _open_debug_file(path: str) -> DebugFile | None:
    file = open_regular(path)
    if file is None:
        return None
    try:
        elf = ElfFile(file)
    except ValueError:
        return None
    return DebugFile(elf, file) if elf.has_dwarf() or elf.section(".symtab") else None


def _has_build_id(debug: DebugFile, build_id: str, checksum: int | None) -> bool:
    if debug.elf.build_id or checksum is None:
        return debug.elf.build_id == build_id
    return not build_id and _checksum(debug.file) == checksum


def _checksum(file: OpenFile) -> int:
    value = offset = 0
    while part := file.read_at(offset, _CHUNK):
        value, offset = zlib.crc32(part, value), offset + len(part)
    return value
