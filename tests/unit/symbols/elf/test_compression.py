"""Packed sections: sound, damaged, and bombs."""

from __future__ import annotations

import lzma
import os
import struct
import zlib
from pathlib import Path

import pytest
import zstandard
from unit.builders.elf_program import (
    LINE_OF_LOCAL,
    LOCAL,
    Built,
    elf,
    file_and_line,
    module,
    name,
    peak,
)


def test_mini_debug_info_names_local_functions(built: Built, tmp_path: Path) -> None:
    built.run(
        "objcopy", "-S", "--remove-section=.comment", "--keep-symbol", LOCAL, built.path, "mini"
    )
    (tmp_path / "mini.xz").write_bytes(lzma.compress((tmp_path / "mini").read_bytes()))
    built.run("strip", built.path)
    assert name(built.module(), built.addresses[LOCAL]) == ""
    built.run("objcopy", "--add-section", ".gnu_debugdata=mini.xz", built.path)
    found = built.module()
    assert name(found, built.addresses[LOCAL] + 2) == LOCAL
    assert found.note == ""


@pytest.mark.parametrize("packing", ["zlib", "zlib-gabi", "zlib-gnu", "zstd"])
def test_packed_sections_are_read(built: Built, packing: str) -> None:
    debug = built.directory / "packed"
    built.run("objcopy", f"--compress-debug-sections={packing}", built.path, debug)
    packed = {section.name for section in elf(debug).sections}
    assert (".zdebug_info" in packed) == (packing == "zlib-gnu")
    assert elf(debug).content(".debug_line" if packing != "zlib-gnu" else ".zdebug_line") == elf(
        built.path
    ).content(".debug_line")
    assert file_and_line(module(debug).locations(built.addresses[LOCAL])[0]) == (
        "program.c",
        LINE_OF_LOCAL,
    )


@pytest.mark.parametrize("packing", ["zlib", "zlib-gnu", "zstd"])
def test_damaged_packed_sections_are_refused(built: Built, packing: str) -> None:
    debug = built.directory / "packed"
    built.run("objcopy", f"--compress-debug-sections={packing}", built.path, debug)
    name = ".zdebug_str" if packing == "zlib-gnu" else ".debug_str"
    section = elf(debug).section(name)
    assert section is not None
    data = bytearray(debug.read_bytes())
    data[section.offset + 28 : section.offset + section.size] = b"\xff" * (section.size - 28)
    debug.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged|bytes instead of"):
        elf(debug).content(name)


def test_an_unknown_packing_gives_no_lines_and_no_error(built: Built) -> None:
    built.run("objcopy", "--compress-debug-sections=zlib", built.path)
    found = elf(built.path)
    section = found.section(".debug_info")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    data[section.offset] = 99
    built.path.write_bytes(data)
    with pytest.raises(ValueError, match="unknown method"):
        elf(built.path).content(".debug_info")
    assert built.module().locations(built.addresses[LOCAL]) == ()
    assert name(built.module(), built.addresses[LOCAL]) == LOCAL


def test_decompression_bombs_are_refused(built: Built) -> None:
    """Sections that are much larger than their header says, or whose header says a huge size."""
    nothing = bytes(70 << 20)
    zlibbed, zstdded = zlib.compress(nothing, 1), zstandard.compress(nothing)
    old = b"ZLIB" + struct.pack(">Q", 10)
    kinds = [
        (".debug_bomb", struct.pack("<IIQQ", 1, 0, 10, 1) + zlibbed, True),
        (".debug_bomb", struct.pack("<IIQQ", 2, 0, 10, 1) + zstdded, True),
        (".zdebug_bomb", old + zlibbed, False),
    ]
    for section, content, packed in kinds:
        bomb = built.with_section(section, content, packed=packed)
        assert peak(lambda bomb=bomb, section=section: bomb.content(section)) < 8 << 20
    for size in (1 << 34, 1 << 63):
        huge = [
            (".debug_bomb", struct.pack("<IIQQ", 1, 0, size, 1) + zlibbed, True),
            (".debug_bomb", struct.pack("<IIQQ", 2, 0, size, 1) + zstdded, True),
            (".zdebug_bomb", b"ZLIB" + struct.pack(">Q", size) + zlibbed, False),
        ]
        for section, content, packed in huge:
            bomb = built.with_section(section, content, packed=packed)
            with pytest.raises(ValueError, match="larger than is sane"):
                bomb.content(section)
    mini = built.with_section(".gnu_debugdata", lzma.compress(nothing, preset=0), packed=False)
    with pytest.raises(ValueError, match="too large"):
        _ = mini.mini
    assert peak(lambda: mini.mini) < 140 << 20


def test_a_sparse_file_is_not_read_whole(built: Built) -> None:
    """A section of 400 GB, in a file of that size."""
    section = elf(built.path).section(".debug_str")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    at = data.find(struct.pack("<QQ", section.offset, section.size))
    data[at + 8 : at + 16] = struct.pack("<Q", 400 << 30)
    built.path.write_bytes(data)
    os.truncate(built.path, 500 << 30)
    assert peak(lambda: elf(built.path).content(".debug_str")) < 8 << 20
    with pytest.raises(ValueError, match="larger than is sane"):
        elf(built.path).content(".debug_str")
