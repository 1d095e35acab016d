"""Opening the files that a process has mapped, once each, whatever became of their names."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from typing import BinaryIO

from locktop.collector.symbols.dwarf import Lines
from locktop.collector.symbols.elf import ElfFile, Symbol
from locktop.collector.symbols.maps import Mapping

_DEBUG_DIRECTORY = "/usr/lib/debug/.build-id"
_MOST_MODULES = 512


class Module:
    """One ELF file with, where there is one, its separate debug file."""

    def __init__(self, file: BinaryIO) -> None:
        self.elf = ElfFile(file)
        self._debug = _debug_file(self.elf.build_id)
        self._lines: Lines | None = None

    def function(self, address: int) -> Symbol | None:
        """Return the function at a link-time address."""
        if self._debug is not None and (found := self._debug.functions().find(address)):
            return found
        return self.elf.functions().find(address)

    def data(self, address: int) -> Symbol | None:
        """Return the data object at a link-time address."""
        if not self.elf.loaded(address):
            return None
        if self._debug is not None and (found := self._debug.objects().find(address)):
            return found
        return self.elf.objects().find(address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the source file's base name and the line of a link-time address."""
        if self._lines is None:
            self._lines = Lines(self.elf if self._debug is None else self._debug)
        return self._lines.find(address)


def _debug_file(build_id: str) -> ElfFile | None:
    if len(build_id) < 3 or not build_id.isalnum():
        return None
    path = f"{_DEBUG_DIRECTORY}/{build_id[:2]}/{build_id[2:]}.debug"
    try:
        return ElfFile(open(path, "rb"))
    except (OSError, ValueError):
        return None


# Kept for all processes looked at; a file that was replaced has another key.
_modules: OrderedDict[tuple[int, int, int], Module | None] = OrderedDict()


def load(pid: int, mapping: Mapping) -> Module | None:
    """Return the module behind a mapping, or None when it cannot be read or is no ELF file."""
    file = _open(pid, mapping)
    if file is None:
        return None
    about = os.fstat(file.fileno())
    key = (about.st_dev, about.st_ino, about.st_mtime_ns)
    if key in _modules:
        file.close()
        _modules.move_to_end(key)
        return _modules[key]
    try:
        module = Module(file)
    except ValueError:
        file.close()
        module = None
    _modules[key] = module
    if len(_modules) > _MOST_MODULES:
        _modules.popitem(last=False)
    return module


def _open(pid: int, mapping: Mapping) -> BinaryIO | None:
    for path in _paths(pid, mapping):
        with contextlib.suppress(OSError):
            # A mapped device or FIFO must not make us wait.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            return os.fdopen(fd, "rb")
    return None


def _paths(pid: int, mapping: Mapping) -> list[str]:
    exact = f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
    if mapping.deleted:
        return [exact]  # the name, if there is such a file, leads to another one
    paths = [exact, f"/proc/{pid}/root{mapping.path}"]
    with contextlib.suppress(OSError):
        # The process may be gone, and with it the way through its root.
        if os.stat(mapping.path).st_ino == mapping.inode:
            paths.append(mapping.path)
    return paths
