"""Damaged ELF files and DWARF: an address or a name, at most one note for a file, never an error.

`make fuzz` does the same for longer (LOCKTOP_FUZZ: how many files of each kind, and from which seed
on: "5000" or "5000:1234").
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

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "60").partition(":")
#: Processor time in seconds for one file with all queries; a sound file takes 5 ms.
MAX_S = 5.0
MAX_MEMORY = 200 << 20


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, elf_files.Sound]:
    directory = tmp_path_factory.mktemp("fuzz")
    return {file.name: file for file in elf_files.build(directory)}


def ask(path: Path, addresses: list[int]) -> bool:
    """Query everything; return whether there were names."""
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
        for places in (module.stored_locations(address), module.locations(address)):
            assert all(isinstance(place, SourceLocation) and place.line >= 0 for place in places)
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
    """The peak of memory since `forget_peak()`, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


KINDS = ("dwarf4", "dwarf5", "zlib", "zlib-gnu", "zstd", "mini", "stripped", "stripped.debug")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str, sound: dict[str, elf_files.Sound], tmp_path: Path) -> None:
    original = sound[kind]
    beside = {name: file.data for name, file in sound.items() if name.startswith("stripped")}
    for name, data in {kind: original.data, **beside}.items():
        (tmp_path / name).write_bytes(data)
    # The debug file is found through the program that it belongs to.
    path = tmp_path / ("stripped" if kind == "stripped.debug" else kind)
    assert ask(path, original.addresses), "the sound one has names"
    named = 0
    before = forget_peak()
    for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS)):
        (tmp_path / kind).write_bytes(damaged(original.data, seed, original.places))
        began = time.thread_time()
        try:
            named += ask(path, original.addresses)
        except Exception as error:
            raise AssertionError(f"{kind}, damaged with seed {seed}") from error
        assert time.thread_time() - began < MAX_S, f"{kind}, damaged with seed {seed}"
        assert peak() - before < MAX_MEMORY, f"{kind}, damaged with seed {seed}"
    assert named, "all files were refused: nothing was tested"
