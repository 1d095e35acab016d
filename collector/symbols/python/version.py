"""The version of a process's CPython, and where its exported data lies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from locktop.collector.linux import procfs
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import open_mapped
from locktop.collector.symbols.memory_map import Mapping as MemoryMapping
from locktop.collector.symbols.memory_map import parse
from locktop.collector.symbols.python.interpreter import is_interpreter_module

_VERSION_IN_NAME = re.compile(r"python(\d)\.(\d+)")
#: Part of the path of each interpreter and of its library.
_NAME = b"python"


class Interpreter(Struct, frozen=True):
    """The file of a process's interpreter, or its library."""

    version: tuple[int, ...]  # three numbers from 3.11 on, else two
    addresses: Mapping[str, int]  # of data objects in the memory of the process


def modules_of(pid: int) -> Iterator[MemoryMapping]:
    """Yield the mappings of code or data that belong to CPython or its library.

    Raises:
        OSError: the process is gone, or its memory map may not be read.
    """
    # A process of ten thousand threads has as many mappings, and none of them is parsed.
    lines = [line for line in procfs.maps(pid).splitlines() if _NAME in line]
    for mapping in parse(b"\n".join(lines)):
        if mapping.is_code_of_a_file and is_interpreter_module(posixpath.basename(mapping.path)):
            yield mapping


def version_of(elf: ElfFile, path: str) -> tuple[int, ...] | None:
    """Return the version of an interpreter: of three numbers from 3.11 on, else two of its name.

    Raises:
        ValueError: the symbol table is damaged.
        OSError: the file cannot be read.
    """
    # PY_VERSION_HEX as a constant (CPython's Include/pylifecycle.h).
    address = elf.object_named("Py_Version")
    data = elf.loaded_bytes(address, 4) if address is not None else b""
    if len(data) == 4:
        return tuple(reversed(data))[:3]
    return version_in_name(path)


def version_in_name(path: str) -> tuple[int, ...] | None:
    """Return major and minor version of an interpreter by its file name; None if it has none."""
    match = _VERSION_IN_NAME.search(posixpath.basename(path))
    return tuple(map(int, match.groups())) if match else None


def find_interpreter(pid: int, symbols: Iterable[str]) -> Interpreter | None:
    """Return the interpreter of a process; None if no file has all data objects.

    Args:
        pid: the process.
        symbols: names of exported data objects.

    Raises:
        OSError: the process is gone, or its memory map may not be read.
    """
    seen = set()
    for mapping in modules_of(pid):
        if mapping.file in seen:
            continue
        seen.add(mapping.file)
        try:
            elf = ElfFile(open_mapped(pid, mapping))
            bias = elf.bias(mapping.start, mapping.offset)
            version = version_of(elf, mapping.path)
            found_addresses = {name: elf.object_named(name) for name in symbols}
        except (OSError, ValueError):  # NotMapped, too
            continue
        addresses = {
            name: address for name, address in found_addresses.items() if address is not None
        }
        if bias is not None and version is not None and len(addresses) == len(found_addresses):
            return Interpreter(
                version, {name: address + bias for name, address in addresses.items()}
            )
    return None
