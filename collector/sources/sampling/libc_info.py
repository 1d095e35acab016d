"""The C library of a process: its glibc version, and which futex calls are its own."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable

from locktop.collector.linux import procfs
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import open_mapped
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse

_NAME = re.compile(r"/(?:libc\.so\.6|libc-2\.\d+\.so)$")
#: Before glibc 2.34 most waiting functions were in libpthread.
_WAITS = re.compile(r"/(?:libc\.so\.6|libc-2\.\d+\.so|libpthread\.so\.0|libpthread-2\.\d+\.so)$")
#: The newest of these versions in a library is its own version, or one shortly before.
_SYMBOLS = re.compile(rb"\0GLIBC_2\.(\d{1,3})(?=\0)")
_MAX = 8 << 20  # bytes of the file that are searched
#: The function that makes any system call for its caller.
_FOR_OTHERS = "syscall"


class CLibrary:
    """The C library of one program."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        try:
            self._space = AddressSpace(parse(procfs.maps(pid)))
        except OSError:
            self._space = AddressSpace([])
        library = next(
            (mapping for mapping in self._space.mappings if _NAME.search(mapping.path)), None
        )
        #: 36 for glibc 2.36; 0 for another C library, or for one that is no file.
        self.version = _version(pid, library) if library is not None else 0
        self._is_file = library is not None
        self.may_wait_at = functools.lru_cache(maxsize=4096)(self._waits_at)

    def has_mapped(self, is_wanted: Callable[[str], bool]) -> bool:
        """Return whether the process has mapped a file whose base name is wanted."""
        paths = {mapping.path for mapping in self._space.mappings}
        return any(is_wanted(os.path.basename(path)) for path in paths)

    def _waits_at(self, pc: int) -> bool:
        """Return whether a futex call at ``pc`` may be a wait for an object of this library.

        Calls by other code are not, neither direct ones nor those through syscall(). The answer is
        True where the owner of the code is unknown.
        """
        if not self._is_file or not pc:
            return True
        mapping = self._space.find(pc)
        if mapping is None or not _WAITS.search(mapping.path):
            return False
        try:
            elf = ElfFile(open_mapped(self._pid, mapping))
            bias = elf.bias(mapping.start, mapping.offset)
            symbols = elf.functions
            symbol = symbols.find(pc - bias) if symbols is not None and bias is not None else None
        except (OSError, ValueError):
            return True
        return symbol is None or symbol.name != _FOR_OTHERS


def _version(pid: int, mapping: Mapping) -> int:
    try:
        data = open_mapped(pid, mapping).read_at(0, _MAX)
    except (OSError, ValueError):
        return 0  # the file was replaced meanwhile
    return max((int(number) for number in _SYMBOLS.findall(data)), default=0)
