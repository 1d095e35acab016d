"""Bounds on what a forged ELF file can make the reader read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from locktop.collector.symbols.elf.bounded_file import MAX_READ, BoundedFile, InMemory


class Huge:
    """A sparse file of any size, which counts the bytes that are read."""

    size = 1 << 50

    def __init__(self) -> None:
        self.total = 0

    def read_at(self, offset: int, size: int) -> bytes:
        self.total += size
        return b""


class Unreadable:
    """A file on a removed medium."""

    size = 100

    def read_at(self, offset: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_read_ends_with_the_file() -> None:
    file = BoundedFile(InMemory(b"0123456789"))
    assert file.read(8, 100) == b"89"
    assert file.read(10, 1) == b""
    assert file.read(1 << 63, 1 << 63) == b""


def test_one_read_and_all_reads_are_bounded() -> None:
    source = Huge()
    file = BoundedFile(source)
    with pytest.raises(ValueError, match="larger than is sane"):
        file.read(0, MAX_READ + 1)
    assert source.total == 0
    file = BoundedFile(source)
    file.read(0, MAX_READ)
    file.reserve(MAX_READ)
    with pytest.raises(ValueError, match="larger than is sane"):
        file.read(0, 1)
    assert source.total == MAX_READ


def test_an_error_of_the_medium_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        BoundedFile(Unreadable()).read(0, 10)


def test_the_command_line_imports_no_reader_of_elf_files() -> None:
    program = (
        "import sys; sys.argv = ['locktop', '--help']\n"
        "from locktop.tui.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'elftools', 'iced_x86'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
