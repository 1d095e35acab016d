"""How much of the Python code in a process is visible."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from locktop.collector.linux import procfs
from locktop.collector.sources.doctor.check import Check, full, limited
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped
from locktop.collector.symbols.memory_map import Mapping, parse
from locktop.collector.symbols.python.interpreter import is_interpreter_module

_OLDEST = (3, 8)
#: From here on threading.Lock is a PyMutex (github.com/python/cpython/pull/125116).
_FIRST_WITH_PYMUTEX = (3, 13, 1)
_VERSION_IN_NAME = re.compile(r"python(\d)\.(\d+)")


def python_check(pid: int) -> Iterator[Check]:
    """Yield the check of the Python interpreter, if the process has one.

    Raises:
        OSError: the process is gone, or its memory map may not be read.
    """
    for mapping in parse(procfs.maps(pid)):
        if mapping.is_code_of_a_file and is_interpreter_module(posixpath.basename(mapping.path)):
            version = _version(pid, mapping)
            if version is not None:
                yield _sight(version)
                return


def _version(pid: int, mapping: Mapping) -> tuple[int, ...] | None:
    """Return the version of an interpreter: of three numbers from 3.11 on, else two of its name."""
    try:
        elf = ElfFile(open_mapped(pid, mapping))
        # PY_VERSION_HEX as a constant (CPython's Include/pylifecycle.h).
        address = elf.object_named("Py_Version")
        data = elf.at(address, 4) if address is not None else b""
    except (NotMapped, OSError, ValueError):
        data = b""
    if len(data) == 4:
        return tuple(reversed(data))[:3]
    match = _VERSION_IN_NAME.search(mapping.path)
    return tuple(map(int, match.groups())) if match else None


def _sight(version: tuple[int, ...]) -> Check:
    name = f"CPython {'.'.join(map(str, version))}"
    if version < _OLDEST:
        return limited("python", f"{name} is too old: Python functions are not shown")
    if version >= _FIRST_WITH_PYMUTEX:
        return limited(
            "python",
            f"{name}: Python functions are shown; who holds a threading.Lock is unknown",
            "docs/runtimes.md says how waits for it are judged",
        )
    return full("python", f"{name}: Python functions are shown")
