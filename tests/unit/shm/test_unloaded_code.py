"""The list of the code that the target unloaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile

from locktop.collector.native import lib
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.shm.unloaded_code import UnloadedCode


def unloaded(directory: Path, *ranges: tuple[int, int], more: int = 0) -> UnloadedCode:
    file = SharedFile()
    file.header.unloaded.count = len(ranges) + more
    for index, (start, end) in enumerate(ranges):
        entry = file.header.unloaded.ranges[index]
        entry.start, entry.end = start, end
    path = file.save(directory)
    found = UnloadedCode(SharedMemory(os.open(path, os.O_RDONLY), str(path)))
    found.refresh()
    return found


def test_addresses_in_a_range_may_be_of_unloaded_code(tmp_path: Path) -> None:
    found = unloaded(tmp_path, (0x1000, 0x2000), (0x5000, 0x6000))
    assert [found.may_have_had(at) for at in (0xFFF, 0x1000, 0x1FFF, 0x2000, 0x5800)] == [
        False, True, True, False, True,
    ]  # fmt: skip


def test_without_unloaded_code_every_address_is_certain(tmp_path: Path) -> None:
    assert not unloaded(tmp_path).may_have_had(0)


@pytest.mark.parametrize("count", [1, lib.LT_UNLOADED_RANGES])
def test_ranges_that_are_not_known_make_every_address_doubtful(tmp_path: Path, count: int) -> None:
    ranges = [(0x1000 * (i + 1), 0x1000 * (i + 1) + 1) for i in range(count)]
    assert unloaded(tmp_path, *ranges, more=1).may_have_had(0x999)
