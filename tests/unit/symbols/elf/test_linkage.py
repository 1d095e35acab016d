"""The names of functions in the linkage table, of a program that the tools of the machine built."""

from __future__ import annotations

import struct
from pathlib import Path

from unit.builders.elf_program import elf, need, run

from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.elf.linkage import linked_names

SOURCE = """\
int puts(const char *);
int putchar(int);
int both(int n)
{
    return puts("one") + putchar(n);
}
"""


def library(directory: Path) -> Path:
    """Return a library that calls two functions of libc through its linkage table."""
    need("gcc")
    (directory / "both.c").write_text(SOURCE)
    run("gcc", "-shared", "-fPIC", "-fplt", "-Wl,-z,lazy", "-o", "both.so", "both.c", cwd=directory)
    return directory / "both.so"


def test_each_slot_has_the_name_of_its_function(tmp_path: Path) -> None:
    path = library(tmp_path)
    printed = [line.split() for line in run("objdump", "-R", path, cwd=tmp_path).splitlines()]
    slots = {
        int(words[0], 16): words[2].partition("@")[0]
        for words in printed
        if len(words) == 3 and words[1].endswith("JUMP_SLOT")
    }
    assert {"puts", "putchar"} <= set(slots.values())
    assert linked_names(elf(path)) == slots


def test_a_file_without_a_linkage_table_has_no_names(tmp_path: Path) -> None:
    path = library(tmp_path)
    run("objcopy", "--remove-section", ".rela.plt", path, "bare.so", cwd=tmp_path)
    assert linked_names(elf(tmp_path / "bare.so")) == {}


def test_symbols_beyond_their_table_have_no_names(tmp_path: Path) -> None:
    path = library(tmp_path)
    data = bytearray(path.read_bytes())
    file = elf(path)
    (table,) = (section for section in file.sections if section.name == ".rela.plt")
    slots = sorted(linked_names(file))
    for number in range(table.size // 24):
        struct.pack_into("<I", data, table.offset + 24 * number + 12, 0xFFFFFF)
    assert linked_names(ElfFile(InMemory(bytes(data)))) == {}
    assert slots
