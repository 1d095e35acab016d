"""ELF files of every kind, built by gcc and binutils: their functions and data."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import pytest
from unit.builders.elf_program import (
    GLOBAL,
    LINE_OF_LOCAL,
    LOCAL,
    Built,
    elf,
    file_and_line,
    module,
    name,
    peak,
    run,
)

from locktop.collector.linux import procfs
from locktop.collector.symbols.memory_map import parse


def test_functions_are_found_by_name(built: Built) -> None:
    whole = elf(built.path)
    for function in (LOCAL, GLOBAL, "main"):
        assert whole.function_named(function) == built.addresses[function]
    for other in ("g_figures", "puts", GLOBAL[1:], GLOBAL[:-1], ""):  # data, an import, no symbol
        assert whole.function_named(other) is None
    built.run("strip", built.path)
    assert elf(built.path).function_named(GLOBAL) is None


def test_a_complete_program_has_functions_lines_data_and_build_id(built: Built) -> None:
    whole = built.module()
    for function in (LOCAL, GLOBAL, "main"):
        start = built.addresses[function]
        assert (name(whole, start), name(whole, start + 3)) == (function, function)
        assert name(whole, start - 1) != function
    assert file_and_line(whole.locations(built.addresses[LOCAL])[0]) == ("program.c", LINE_OF_LOCAL)
    figures = whole.data(built.addresses["g_figures"] + 79)
    assert figures is not None
    assert (figures.name, figures.size) == ("g_figures", 80)
    behind = whole.data(built.addresses["g_figures"] + 80)
    assert behind is None or behind.name != "g_figures"
    printed = built.run("readelf", "-n", built.path)
    assert f"Build ID: {whole.elf.build_id}\n" in printed
    assert whole.note == ""


def test_functions_of_the_c_library_agree_with_readelf() -> None:
    """The first and the last byte of each function; many functions are aliases or nested."""
    (path,) = {Path(m.path) for m in parse(procfs.maps(os.getpid())) if "/libc.so" in m.path}
    functions = []
    for line in run("readelf", "-sW", path, cwd=path.parent).splitlines():
        words = line.split()
        if len(words) > 7 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND":
            functions.append((int(words[1], 16), int(words[2], 0), words[7].partition("@")[0]))
    assert len(functions) > 1000
    found = module(path)
    for start, size, symbol in functions[::7]:
        for address in {start, start + max(size, 1) - 1}:
            covering = {n for s, length, n in functions if s <= address < s + max(length, 1)}
            assert name(found, address) in covering, symbol


def test_a_huge_symbol_table_is_not_sorted(built: Built) -> None:
    """The columns would take more memory than many machines have."""
    section = elf(built.path).section(".symtab")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    at = data.find(struct.pack("<QQ", section.offset, section.size))
    data[at + 8 : at + 16] = struct.pack("<Q", 400 << 20)
    built.path.write_bytes(data)
    os.truncate(built.path, 1 << 30)
    forged = built.module()
    assert peak(lambda: forged.function(built.addresses[LOCAL])) < 8 << 20
    assert forged.note.endswith(".symtab is larger than is sane")


@pytest.mark.parametrize("moved", [0x10_0000, 0x3000_0000])
def test_addresses_of_a_moved_program_fit_its_debug_file(built: Built, moved: int) -> None:
    """The addresses of the program differ from those of its debug file."""
    debug = built.directory / built.by_build_id
    built.separate(debug)
    built.run("objcopy", f"--change-addresses={moved:#x}", built.path)
    found = built.module(built.directory)
    assert min(segment.address for segment in found.elf.segments) == moved
    symbol = found.function(built.addresses[LOCAL] + moved + 1)
    assert symbol is not None
    assert (symbol.name, symbol.address) == (LOCAL, built.addresses[LOCAL] + moved)
    assert file_and_line(found.locations(built.addresses[LOCAL] + moved)[0]) == (
        "program.c",
        LINE_OF_LOCAL,
    )
    assert found.data(built.addresses["g_figures"] + moved) is not None
    assert name(found, built.addresses[LOCAL]) == ""


@pytest.mark.parametrize("flag", ["-pie", "-no-pie", "-static", "-Wl,-Ttext-segment=0x70000000"])
def test_programs_of_each_way_to_link_are_read(tmp_path: Path, flag: str) -> None:
    built = Built(tmp_path, flag)
    found = built.module()
    assert name(found, built.addresses[LOCAL]) == LOCAL
    first = found.elf.segments[0]
    base = 0x5555_0000_0000 if flag == "-pie" else first.address
    assert found.elf.bias(base, 0) == base - first.address


def test_a_segment_may_begin_within_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(".globl _start\n_start: nop\n")
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-N", "-o", "a", "a.o", cwd=tmp_path)
    found = elf(tmp_path / "a")
    (segment,) = found.segments
    into = segment.offset % mmap.PAGESIZE
    assert into, "the linker now aligns the segment"
    assert found.bias(segment.address - into, segment.offset - into) == 0


def test_symbol_tables_of_32_bits_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(
        ".globl first\n.type first,@function\n.text\nnop\nfirst: nop\nnop\n.size first,.-first\n"
        ".data\n.type word,@object\nword: .long 7\n.size word,4\n"
    )
    run("as", "--32", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-m", "elf_i386", "-e", "first", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    printed = dict(
        line.split()[::2] for line in run("nm", "--radix=d", "a", cwd=tmp_path).splitlines()
    )
    addresses = {symbol: int(address) for address, symbol in printed.items()}
    assert name(found, addresses["first"] + 1) == "first"
    assert name(found, addresses["first"] + 2) == ""
    word = found.data(addresses["word"])
    assert word is not None
    assert (word.name, word.size) == ("word", 4)


def test_a_function_without_a_size_ends_with_its_section(tmp_path: Path) -> None:
    """Code of another section (.plt behind .init) is not part of it."""
    (tmp_path / "a.s").write_text(
        '.section .one,"ax",@progbits\n.type unsized,@function\nunsized: nop\nnop\n'
        '.section .two,"ax",@progbits\nnop\nnop\n.text\n.globl _start\n_start: nop\n'
    )
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    one, two = found.elf.section(".one"), found.elf.section(".two")
    assert one is not None
    assert two is not None
    assert [name(found, one.address + n) for n in (0, 1, 2)] == ["unsized", "unsized", ""]
    assert name(found, two.address) == ""


def test_the_outer_function_is_found_behind_an_inner_one(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(
        ".globl _start\n.text\n.type outer,@function\n.type inner,@function\n_start:\nouter: nop\n"
        "inner: nop\n.size inner,1\nnop\nnop\n.size outer,4\n"
    )
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    start = found.elf.segments[-1].address
    text = found.elf.section(".text")
    assert text is not None
    start = text.address
    names = [name(found, start + n) for n in range(5)]
    assert names == ["outer", "inner", "outer", "outer", ""]


def test_names_lose_the_version_of_a_shared_library(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        'int put_new(void) { return 1; }\n__asm__(".symver put_new,put@@V1");\n'
        'int put_old(void) { return 2; }\n__asm__(".symver put_old,put@V0");\n'
    )
    (tmp_path / "map").write_text("V0 { local: *; }; V1 { global: put; };\n")
    flags = ["-fPIC", "-shared", "-Wl,--version-script=map"]
    run("cc", *flags, "-o", "a.so", "a.c", cwd=tmp_path)
    printed = run("nm", "a.so", cwd=tmp_path)
    assert "put@@V1" in printed
    found = module(tmp_path / "a.so")
    for line in printed.splitlines():
        address, kind, *_ = line.split()
        if kind == "T":
            assert "@" not in name(found, int(address, 16))
