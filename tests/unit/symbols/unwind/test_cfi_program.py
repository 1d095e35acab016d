"""Rows of call frame information, each compared with the row of readelf."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support import requirements
from support.thoroughness import some

from locktop.collector.linux import process_memory, procfs
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.memory_map import Mapping, parse
from locktop.collector.symbols.safe_open import open_regular
from locktop.collector.symbols.unwind.cfi_program import CfaRule, RegisterRule, RuleKind, UnwindRow
from locktop.collector.symbols.unwind.eh_frame import FrameTable

X86_64 = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16))]
AARCH64 = [*(f"x{n}" for n in range(31)), "sp", *(f"?{n}" for n in range(32, 64))]
AARCH64 += [f"v{n}" for n in range(32)]
#: Rows of a file that are compared: libc has some 20,000.
MAX = 1000

SOURCE = """\
#include <stdio.h>
#include <stdlib.h>
int taken(int n)
{
    char some[n + 20];
    return printf("%d", n) + some[rand() % n];
}
int main(int count, char **words)
{
    for (int n = 0; n < count; n++)
        if (words[n][0] == 'x')
            return taken(count) + taken(n);
    return 0;
}
"""


class ReadelfRow(NamedTuple):
    """A row of readelf."""

    address: int
    cfa: str
    rules: dict[str, str]


def readelf_rows(path: Path) -> Iterator[ReadelfRow]:
    """Yield the rows that hold at some address."""
    command = ["readelf", "--debug-dump=frames-interp", str(path)]
    # readelf without debug files has another exit status than 0.
    said = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    rows: dict[int, ReadelfRow] = {}
    columns: list[str] = []
    end = 0
    for line in said.splitlines():
        if " FDE " in line:
            end = int(re.split(r"\.\.", line)[1].split()[0], 16)
        elif " CIE " in line or " ZERO " in line:
            end = 0
        elif line.startswith("   LOC"):
            columns = line.split()[2:]
        elif end and (words := line.split()) and len(words) == len(columns) + 2:
            address = int(words[0], 16)
            if address < end:
                rows[address] = ReadelfRow(
                    address, words[1], dict(zip(columns, words[2:], strict=True))
                )
    return iter(rows.values())


def same(row: UnwindRow | None, wanted: ReadelfRow, names: list[str]) -> bool:
    if row is None:
        return False
    numbers = {name: number for number, name in enumerate(names)}
    numbers["ra"] = row.return_register
    numbers["vg"] = 46  # of aarch64, as binutils 2.44 calls it
    rules = {numbers[name]: text for name, text in wanted.rules.items()}
    return same_cfa(row.cfa, wanted.cfa, names) and all(
        same_rule(row.rules.get(number), text, names) for number, text in rules.items()
    )


def same_cfa(cfa: CfaRule | None, text: str, names: list[str]) -> bool:
    if cfa is None or cfa.code:
        return cfa is not None and text == "exp"
    return f"{names[cfa.register]}{cfa.distance:+d}" == text


def same_rule(rule: RegisterRule | None, text: str, names: list[str]) -> bool:
    if rule is None:
        return text == "u"  # readelf prints it also for a register without a rule
    kinds = {
        RuleKind.UNDEFINED: "u",
        RuleKind.SAME: "s",
        RuleKind.AT_CFA: f"c{rule.number:+d}",
        RuleKind.CFA_PLUS: f"v{rule.number:+d}",
        RuleKind.AT_EXPRESSION: "exp",
        RuleKind.EXPRESSION: "vexp",
        RuleKind.REGISTER: names[rule.number] if rule.kind is RuleKind.REGISTER else "",
    }
    return kinds[rule.kind] == text


def compare(path: Path, names: list[str], table: FrameTable | None = None) -> None:
    if table is None:
        file = open_regular(path)
        assert file is not None
        table = FrameTable(ElfFile(file))
    rows = list(readelf_rows(path))
    assert len(rows) > 5
    for wanted in some(rows, MAX):
        row = table.row(wanted.address)
        assert same(row, wanted, names), (wanted, row)


def built(directory: Path, *flags: str, compiler: str = "cc") -> Path:
    requirements.command(compiler, optional=True)
    (directory / "program.c").write_text(SOURCE)
    command = [compiler, "-O2", *flags, "-o", "program", "program.c"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "program"


def mapping(part: str) -> Mapping:
    """A mapping of this process with executable code and such a path."""
    mappings = [m for m in parse(procfs.maps(os.getpid())) if m.executable]
    return next(m for m in mappings if part in m.path)


def test_rows_of_the_c_library_agree_with_readelf() -> None:
    compare(Path(mapping("/libc.so").path), X86_64)


def test_rows_of_python_agree_with_readelf() -> None:
    """The program, or its library if most code is there."""
    mappings = [m for m in parse(procfs.maps(os.getpid())) if m.executable and "python" in m.path]
    largest = max(mappings, key=lambda m: m.end - m.start)
    compare(Path(largest.path), X86_64)


def test_rows_of_the_vdso_agree_with_readelf(tmp_path: Path) -> None:
    vdso = mapping("[vdso]")
    data = process_memory.read(os.getpid(), vdso.start, vdso.end - vdso.start)
    (tmp_path / "vdso").write_bytes(data)
    compare(tmp_path / "vdso", X86_64, FrameTable(ElfFile(InMemory(data))))


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-fno-omit-frame-pointer",),
        ("-static",),
        ("-Wl,--no-eh-frame-hdr",),
        ("-no-pie", "-mcmodel=large"),
        ("-s",),
    ],
)
def test_rows_of_compiled_programs_agree_with_readelf(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    compare(built(tmp_path, *flags), X86_64)


@pytest.mark.parametrize("flags", [("-gdwarf-2",), ("-g",), ("-g", "-gz"), ("-g", "-gz=zlib-gnu")])
def test_debug_frame_is_read(flags: tuple[str, ...], tmp_path: Path) -> None:
    without = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    path = built(tmp_path, *flags, *without)
    subprocess.run(["objcopy", "-R", ".eh_frame*", path], check=True)
    compare(path, X86_64)


def test_debug_frame_of_a_separate_debug_file_is_read(tmp_path: Path) -> None:
    path = built(tmp_path, "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    debug = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", "-R", ".eh_frame", path], check=True)
    files = [open_regular(path), open_regular(debug)]
    elves = [ElfFile(file) for file in files if file is not None]
    rows = list(readelf_rows(debug))
    with pytest.raises(ValueError, match="damaged"):  # the header of the removed section is left
        FrameTable(elves[0]).row(rows[0].address)
    table = FrameTable(elves[0], lambda: (elves[1], 0))
    compare(debug, X86_64, table)
    assert len({table.row(wanted.address) is None for wanted in rows}) == 1
    moved = FrameTable(elves[0], lambda: (elves[1], 0x1000))
    row = moved.row(rows[0].address - 0x1000)
    assert row is not None
    assert row.start == rows[0].address - 0x1000


@pytest.mark.parametrize(
    "flags", [(), ("-fno-omit-frame-pointer",), ("-mbranch-protection=standard",)]
)
def test_rows_of_aarch64_programs_agree_with_readelf(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    path = built(tmp_path, *flags, "-static", compiler="aarch64-linux-gnu-gcc")
    compare(path, AARCH64)


def test_signed_return_addresses(tmp_path: Path) -> None:
    """The rows of readelf have no column for the signature."""
    path = built(tmp_path, "-mbranch-protection=standard", compiler="aarch64-linux-gnu-gcc")
    file = open_regular(path)
    assert file is not None
    table = FrameTable(ElfFile(file))
    found = [table.row(wanted.address) for wanted in readelf_rows(path)]
    signed = [row is not None and row.is_signed for row in found]
    assert True in signed
    assert False in signed


def test_an_address_without_a_function_has_no_row() -> None:
    file = open_regular(mapping("/libc.so").path)
    assert file is not None
    table = FrameTable(ElfFile(file))
    for address in (0, 1, 0x100, 1 << 40, (1 << 64) - 1):
        assert table.row(address) is None
