"""The C library that a process runs with: which version of glibc, and which calls are its own."""

from __future__ import annotations

import functools
import re

from locktop.collector.linux import procfs
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import open_mapped
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse

_NAME = re.compile(r"/(?:libc\.so\.6|libc-2\.\d+\.so)$")
#: Before glibc 2.34 most of what waits was in a library of its own.
_WAITS = re.compile(r"/(?:libc\.so\.6|libc-2\.\d+\.so|libpthread\.so\.0|libpthread-2\.\d+\.so)$")
#: The newest of these that a library defines is its version, or one shortly before it.
_SYMBOLS = re.compile(rb"\0GLIBC_2\.(\d{1,3})(?=\0)")
_MAX = 8 << 20  # bytes of the file that are looked through
#: Makes any call for whoever asks it to.
_FOR_OTHERS = "syscall"


class CLibrary:
    """Of one program that a process executes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        try:
            self._space = AddressSpace(parse(procfs.maps(pid)))
        except OSError:
            self._space = AddressSpace([])
        found = next((one for one in self._space.mappings if _NAME.search(one.path)), None)
        #: 36 of glibc 2.36; 0 where the process has another C library, or none that is a file.
        self.version = _version(pid, found) if found is not None else 0
        self._is_file = found is not None
        self.waits_at = functools.lru_cache(maxsize=4096)(self._waits_at)

    def _waits_at(self, pc: int) -> bool:
        """Tell whether a futex call that is made there may be a wait for an object of this library:
        not where somebody else makes it, by himself or through syscall(). Where it is not known
        which code is the library's it may be."""
        if not self._is_file or not pc:
            return True
        mapping = self._space.find(pc)
        if mapping is None or not _WAITS.search(mapping.path):
            return False
        try:
            elf = ElfFile(open_mapped(self._pid, mapping))
            bias = elf.bias(mapping.start, mapping.offset)
            symbols = elf.functions
            found = symbols.find(pc - bias) if symbols is not None and bias is not None else None
        except (OSError, ValueError):
            return True
        return found is None or found.name != _FOR_OTHERS


def _version(pid: int, mapping: Mapping) -> int:
    try:
        data = open_mapped(pid, mapping).read_at(0, _MAX)
    except (OSError, ValueError):
        return 0  # replaced meanwhile: another one says nothing
    return max((int(found) for found in _SYMBOLS.findall(data)), default=0)
