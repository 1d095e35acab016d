"""Names for code of the kernel."""

from __future__ import annotations

import os

from locktop.collector.linux import procfs
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.kernel_code import VdsoNames, returns_from_handler
from locktop.collector.symbols.memory_map import Mapping
from locktop.collector.symbols.resolver import Resolver


def own_vdso() -> Mapping:
    mappings = memory_map.parse(procfs.maps(os.getpid()))
    return next(one for one in mappings if one.path == "[vdso]")


def test_functions_of_the_vdso_have_the_names_of_the_c_library() -> None:
    vdso, resolver = own_vdso(), Resolver(os.getpid())
    addresses = range(vdso.start + 1, vdso.end, 16)
    for address in addresses:
        resolver.frames(address)
    resolver.wait(60)
    named = {resolver.frame(address).function for address in addresses}
    resolver.close()
    assert {"clock_gettime", "gettimeofday", "time"} <= named
    assert "" in named  # between and behind the functions
    assert not any(name.startswith("__vdso") for name in named)


def test_memory_that_is_no_vdso_has_no_names() -> None:
    mappings = memory_map.parse(procfs.maps(os.getpid()))
    heap = next(one for one in mappings if one.writable)
    assert VdsoNames(os.getpid()).function(heap, heap.start) == ""
    assert VdsoNames(0).function(own_vdso(), own_vdso().start) == ""


def test_other_code_is_no_return_from_a_handler() -> None:
    with open("/proc/self/exe", "rb") as file:
        elf = ElfFile(InMemory(file.read()))
    assert not returns_from_handler(elf, elf.first_address())
    assert not returns_from_handler(elf, 1 << 60)
