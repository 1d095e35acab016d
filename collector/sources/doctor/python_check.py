"""How much of the Python code in a process is visible."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model.diagnosis import Check, full, limited
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped
from locktop.collector.symbols.memory_map import Mapping
from locktop.collector.symbols.python.version import modules_of, version_in_name, version_of

_OLDEST = (3, 8)
#: From here on threading.Lock is a PyMutex (github.com/python/cpython/pull/125116).
_FIRST_WITH_PYMUTEX = (3, 13, 1)


def python_check(pid: int) -> Iterator[Check]:
    """Yield the check of the Python interpreter, if the process has one.

    Raises:
        OSError: the process is gone, or its memory map may not be read.
    """
    for mapping in modules_of(pid):
        version = _version(pid, mapping)
        if version is not None:
            yield _sight(version)
            return


def _version(pid: int, mapping: Mapping) -> tuple[int, ...] | None:
    try:
        return version_of(ElfFile(open_mapped(pid, mapping)), mapping.path)
    except (NotMapped, OSError, ValueError):
        return version_in_name(mapping.path)


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
