"""Sound ELF files of each kind, and the parts of them that are worth damaging."""

from __future__ import annotations

import lzma
import subprocess
from dataclasses import dataclass
from pathlib import Path

from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile

SOURCE = """\
#include <stdio.h>
#include <stdlib.h>
int g_figures[20] = {1};
struct shard {
    char key[40];
    union {
        long number;
        struct {
            int before, after;
        } both;
    } value[3];
};
static const struct {
    long size;
    struct shard shards[4];
} g_pool = {1, {{"key", {{2}}}}};
static inline __attribute__((always_inline)) int inlined(int n)
{
    return n * 3 + rand();
}
static __attribute__((noinline)) int in_a_file_of_its_own(int n)
{
    return inlined(n) + puts("here");
}
int everybodys_function(int n)
{
    return in_a_file_of_its_own(n) + 1;
}
int main(void)
{
    return everybodys_function(1) + g_figures[2] + g_pool.shards[rand() % 4].value[1].both.after;
}
"""
_DWARF = (
    "info", "abbrev", "line", "str", "line_str", "aranges", "ranges", "rnglists", "addr",
    "str_offsets",
)  # fmt: skip


@dataclass(frozen=True)
class Sound:
    """One file: its bytes, the parts worth damaging (offset, size), and addresses for queries."""

    name: str
    data: bytes
    ranges: list[tuple[int, int]]
    addresses: list[int]


def build(directory: Path) -> list[Sound]:
    """Compile a program and make a file of each kind from it."""

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
        return done.stdout

    (directory / "a.c").write_text(SOURCE)
    for version in ("4", "5"):
        run("cc", "-O2", f"-gdwarf-{version}", "-o", f"dwarf{version}", "a.c")
    for packing in ("zlib", "zlib-gnu", "zstd"):
        run("objcopy", f"--compress-debug-sections={packing}", "dwarf5", packing)
    run("objcopy", "--only-keep-debug", "dwarf5", "stripped.debug")
    run("objcopy", "-S", "--keep-symbol=in_a_file_of_its_own", "dwarf5", "small")
    (directory / "small.xz").write_bytes(lzma.compress((directory / "small").read_bytes()))
    run("strip", "-o", "no-symbols", "dwarf5")
    run("objcopy", "--add-section=.gnu_debugdata=small.xz", "no-symbols", "mini")
    run("objcopy", "--add-gnu-debuglink=stripped.debug", "no-symbols", "stripped")
    symbols = (line.split() for line in run("nm", "dwarf5").splitlines())
    addresses = [int(words[0], 16) for words in symbols if len(words) == 3]
    names = ("dwarf4", "dwarf5", "zlib", "zlib-gnu", "zstd", "mini", "stripped", "stripped.debug")
    return [_sound(directory / name, addresses) for name in names]


def _sound(path: Path, addresses: list[int]) -> Sound:
    data = path.read_bytes()
    file = ElfFile(InMemory(data))
    table = int.from_bytes(data[40:48], "little")
    named = [".symtab", ".strtab", ".dynsym", ".dynstr", ".shstrtab", ".note.gnu.build-id"]
    named += [".gnu_debugdata", ".gnu_debuglink", ".gnu_debugaltlink"]
    named += [f".{z}debug_{part}" for z in ("", "z") for part in _DWARF]
    sections = [s for s in map(file.section, named) if s is not None]
    ranges = [(0, 64), (64, 13 * 56), (table, len(data) - table)]
    ranges += [(section.offset, section.size) for section in sections]
    return Sound(path.name, data, ranges, addresses)
