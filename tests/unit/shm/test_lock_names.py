"""Names that a program gave its locks, in files made by hand."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.errors import LocktopError
from locktop.collector.native import lib
from locktop.collector.shm.lock_names import ProgramLockNames
from locktop.collector.shm.segment import SharedMemory

ADDRESS = 0x7F0000001000


def names(file: SharedFile, directory: Path) -> ProgramLockNames:
    path = file.save(directory)
    given = ProgramLockNames(SharedMemory(os.open(path, os.O_RDWR), str(path)))
    given.refresh()
    return given


def test_a_name_belongs_to_an_address_or_to_one_kind_at_the_address(tmp_path: Path) -> None:
    file = SharedFile()
    file.add_name(ADDRESS, b"cache")
    file.add_name(key(lib.LT_KIND_SEM, ADDRESS), b"/sem")
    file.add_name(ADDRESS + 64, b"")  # the program removed the name
    for number in range(20):  # beyond the first chunk
        file.add_name(ADDRESS + 128 + 8 * number, f"shard {number}".encode())
    given = names(file, tmp_path)
    assert given.name(key(lib.LT_KIND_MUTEX, ADDRESS)) == "cache"
    assert given.name(key(lib.LT_KIND_SEM, ADDRESS)) == "/sem"
    assert given.name(key(lib.LT_KIND_MUTEX, ADDRESS + 64)) == ""
    assert given.name(key(lib.LT_KIND_MUTEX, ADDRESS + 128 + 8 * 19)) == "shard 19"


def test_a_name_is_sanitized(tmp_path: Path) -> None:
    file = SharedFile()
    file.add_name(ADDRESS, b"\x1b[31mred\n\xff" + b"x" * 100)
    name = names(file, tmp_path).name(key(lib.LT_KIND_MUTEX, ADDRESS))
    assert name.isprintable()
    assert name.startswith("?[31mred ")


def test_a_lock_keeps_its_name_during_a_change(tmp_path: Path) -> None:
    file = SharedFile()
    entry = file.add_name(ADDRESS, b"before")
    given = names(file, tmp_path)
    entry.seq, entry.text[0:6] = 3, list(b"aft\0\0\0")
    file.header.names_changed += 1
    file.save(tmp_path)
    given.refresh()
    assert given.name(key(lib.LT_KIND_MUTEX, ADDRESS)) == "before"
    entry.seq, entry.text[0:6] = 4, list(b"after\0")
    file.save(tmp_path)
    given.refresh()
    assert given.name(key(lib.LT_KIND_MUTEX, ADDRESS)) == "after"


def test_a_damaged_table_is_refused_or_read(tmp_path: Path) -> None:
    chance = random.Random(3)
    for _ in range(300):
        file = SharedFile()
        for number in range(6):
            file.add_name(ADDRESS + number * 8, b"name")
        start = file.offset_of(file.header.names)
        for _ in range(3):
            file.data[start + chance.randrange(100)] = chance.randrange(256)
        try:
            given = names(file, tmp_path)
        except LocktopError:
            continue
        assert all(given.name(ADDRESS + number * 8).isprintable() for number in range(6))


@pytest.mark.parametrize("length", [0, 1, 111])
def test_names_of_every_length_are_read(length: int, tmp_path: Path) -> None:
    file = SharedFile()
    file.add_name(ADDRESS, b"n" * length)
    assert names(file, tmp_path).name(ADDRESS) == "n" * length
