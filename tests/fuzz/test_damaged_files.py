"""Damaged ELF files and DWARF give an address or a name, at most one note, and never an error.

`make fuzz` takes longer. LOCKTOP_FUZZ has the number of files of each kind and the first seed:
"5000" or "5000:1234".
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fuzz import elf_files
from fuzz.mutate import damaged
from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.elf.symbol_table import Symbol
from locktop.collector.symbols.modules import Module
from locktop.collector.symbols.safe_open import open_regular

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "30").partition(":")
#: The CPU time for all queries to one file; a sound file takes 5 ms.
MAX_S = 5.0
MAX_MEMORY = 200 << 20


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, elf_files.Sound]:
    directory = tmp_path_factory.mktemp("fuzz")
    return {file.name: file for file in elf_files.build(directory)}


def query_all(path: Path, addresses: list[int]) -> bool:
    """Make every query to a file; return whether there were names."""
    file = open_regular(path)
    assert file is not None
    try:
        module = Module(file, "/" + path.name, [str(path.parent)])
    except ValueError:
        return False
    named = parts = False
    for address in (*addresses, 0, 1, (1 << 64) - 1):
        function = module.function(address)
        data = module.data(address)
        assert isinstance(function, Symbol | None)
        assert isinstance(data, Symbol | None)
        for offset in (0, 60, 100):
            part = module.part(data, data.address + offset) if data is not None else None
            assert part is None or all(isinstance(text, str) for text in part)
            parts |= bool(part and part[1])
        for locations in (module.stored_locations(address), module.locations(address)):
            assert all(isinstance(each, SourceLocation) and each.line >= 0 for each in locations)
        named |= function is not None
    try:
        assert isinstance(module.elf.function_named("main"), int | None)
    except ValueError:
        pass
    for offset in (0, 0x1000, 0xFFFF_FFFF_FFFF_F000):
        module.elf.bias(0x5555_0000_0000, offset)
    assert isinstance(module.note, str)
    assert "\n" not in module.note
    return named and (parts or "mini" in path.name)


def peak() -> int:
    """Return the peak memory of this process in bytes since `reset_peak()`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


KINDS = ("dwarf4", "dwarf5", "zlib", "zlib-gnu", "zstd", "mini", "stripped", "stripped.debug")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str, sound: dict[str, elf_files.Sound], tmp_path: Path) -> None:
    original = sound[kind]
    beside = {name: file.data for name, file in sound.items() if name.startswith("stripped")}
    for name, data in {kind: original.data, **beside}.items():
        (tmp_path / name).write_bytes(data)
    # The program leads to its debug file.
    path = tmp_path / ("stripped" if kind == "stripped.debug" else kind)
    assert query_all(path, original.addresses), "the sound file has names"
    named = 0
    before = reset_peak()
    for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS)):
        (tmp_path / kind).write_bytes(damaged(original.data, seed, original.ranges))
        began = time.thread_time()
        try:
            named += query_all(path, original.addresses)
        except Exception as error:
            raise AssertionError(f"{kind}, damaged with seed {seed}") from error
        assert time.thread_time() - began < MAX_S, f"{kind}, damaged with seed {seed}"
        assert peak() - before < MAX_MEMORY, f"{kind}, damaged with seed {seed}"
    assert named, "every file was refused, so nothing was tested"
