"""Which version of glibc a process runs with."""

from __future__ import annotations

import re

from locktop.collector import procfs
from locktop.collector.symbols.opened import open_regular

_NAME = re.compile(rb"/(?:libc\.so\.6|libc-2\.\d+\.so)$")
#: The newest of these that a library defines is its version, or one shortly before it.
_SYMBOLS = re.compile(rb"\0GLIBC_2\.(\d{1,3})(?=\0)")
_MOST = 8 << 20  # bytes of the file that are looked through


def glibc_of(pid: int) -> int:
    """Return 36 of version 2.36; 0 where the process has another C library, or none that is a file
    of its own."""
    try:
        maps = procfs.maps(pid)
    except OSError:
        return 0
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and _NAME.search(fields[5]):
            return _version(f"/proc/{pid}/map_files/{fields[0].decode()}", pid, fields[5].decode())
    return 0


def _version(mapped: str, pid: int, path: str) -> int:
    # What is mapped can be opened by its mapping only with more rights than most have.
    opened = open_regular(mapped) or open_regular(f"/proc/{pid}/root{path}")
    data = opened.read_at(0, _MOST) if opened is not None else b""
    return max((int(found) for found in _SYMBOLS.findall(data)), default=0)
