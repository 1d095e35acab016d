"""Which version of glibc a process runs with."""

from __future__ import annotations

import re

from locktop.collector import procfs
from locktop.collector.symbols.mapped_file import open_mapped
from locktop.collector.symbols.maps import Mapping, parse

_NAME = re.compile(r"/(?:libc\.so\.6|libc-2\.\d+\.so)$")
#: The newest of these that a library defines is its version, or one shortly before it.
_SYMBOLS = re.compile(rb"\0GLIBC_2\.(\d{1,3})(?=\0)")
_MOST = 8 << 20  # bytes of the file that are looked through


def glibc_of(pid: int) -> int:
    """Return 36 of version 2.36; 0 where the process has another C library, or none that is a file
    of its own."""
    try:
        mappings = parse(procfs.maps(pid))
    except OSError:
        return 0
    for mapping in mappings:
        if _NAME.search(mapping.path):
            return _version(pid, mapping)
    return 0


def _version(pid: int, mapping: Mapping) -> int:
    try:
        data = open_mapped(pid, mapping).read_at(0, _MOST)
    except (OSError, ValueError):
        return 0  # replaced meanwhile: another one says nothing
    return max((int(found) for found in _SYMBOLS.findall(data)), default=0)
