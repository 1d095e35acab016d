"""A small C program, built and taken apart by the tools of the machine."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from support import requirements

from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.modules import Module
from locktop.collector.symbols.safe_open import OpenFile, open_regular

SOURCE = """\
#include <stdio.h>
int g_figures[20] = {1};
static __attribute__((noinline)) int in_a_file_of_its_own(int n)
{
    return n + puts("here");
}
int everybodys_function(int n)
{
    return in_a_file_of_its_own(n) + 1;
}
int main(void)
{
    return everybodys_function(1) + g_figures[2];
}
"""
LOCAL, GLOBAL = "in_a_file_of_its_own", "everybodys_function"
LINE_OF_LOCAL = 4


def run(*command: str | Path, cwd: Path) -> str:
    """Run a tool and return its output."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, check=True, capture_output=True)
    return done.stdout.decode()


def need(program: str) -> None:
    """Skip the test if a tool is missing; in CI every tool must be installed."""
    requirements.command(program)


class Built:
    """A program with DWARF, and the addresses of its functions from `nm`."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.directory = directory
        self.path = directory / "program"
        (directory / "program.c").write_text(SOURCE)
        self.run("cc", "-O1", "-g", *flags, "-o", self.path, "program.c")
        printed = (line.split() for line in self.run("nm", self.path).splitlines())
        self.addresses = {words[2]: int(words[0], 16) for words in printed if len(words) == 3}

    def run(self, *command: str | Path) -> str:
        return run(*command, cwd=self.directory)

    def separate(self, debug: Path, *, strip: str = "--strip-all") -> None:
        """Move symbols and DWARF to a file of their own."""
        debug.parent.mkdir(parents=True, exist_ok=True)
        self.run("objcopy", "--only-keep-debug", self.path, debug)
        self.run("strip", strip, self.path)

    def with_section(self, section: str, content: bytes, *, packed: bool) -> ElfFile:
        """A program with one more section, which may be marked as compressed."""
        (self.directory / "content").write_bytes(content)
        self.run("objcopy", "--add-section", f"{section}=content", self.path, "forged")
        data = bytearray((self.directory / "forged").read_bytes())
        if packed:
            titles = [found.name for found in ElfFile(InMemory(bytes(data))).sections]
            table = struct.unpack_from("<Q", data, 40)[0]
            at = table + 64 * titles.index(section) + 8
            data[at : at + 8] = struct.pack("<Q", 0x800)
        return ElfFile(InMemory(bytes(data)))

    def module(self, *roots: Path) -> Module:
        return module(self.path, roots)

    @property
    def by_build_id(self) -> Path:
        """The path of the debug file by build id, below a root."""
        build_id = elf(self.path).build_id
        return Path(f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")


def opened(path: Path) -> OpenFile:
    file = open_regular(path)
    assert file is not None
    return file


def elf(path: Path) -> ElfFile:
    return ElfFile(opened(path))


def module(path: Path, roots: tuple[Path, ...] = ()) -> Module:
    """The module of a program at ``path`` below the first root."""
    first = str(roots[0]) if roots else "/nowhere"
    return Module(opened(path), str(path).removeprefix(first), [str(root) for root in roots])


def assembled(directory: Path, text: str) -> bytes:
    """The machine code of assembly text for x86-64."""
    (directory / "a.s").write_text(text + "\n")
    subprocess.run(["as", "--64", "-o", "a.o", "a.s"], cwd=directory, check=True)
    code = ElfFile(InMemory((directory / "a.o").read_bytes())).content(".text")
    assert code is not None
    return code


def name(found: Module, address: int) -> str:
    symbol = found.function(address)
    return symbol.name if symbol else ""


def peak(work: Callable[[], object]) -> int:
    """Return the peak of bytes that Python objects took during ``work``."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def file_and_line(location: SourceLocation) -> tuple[str, int]:
    """The name of the file without its directory, and the line."""
    return location.file.rpartition("/")[2], location.line
