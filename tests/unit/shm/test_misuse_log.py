"""The misuses that the library noted in the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile

from locktop.collector.model import MisuseKind
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.misuse_log import MisuseLog
from locktop.collector.shm.segment import SharedMemory

SECOND = 1_000_000_000
FREE = {"kind": lib.LT_MISUSE_RELEASED_FREE, "count": 1}


class Log:
    """The log of a file, which may grow."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.log = MisuseLog(memory, Clock(memory.header()))

    def add(self, **fields: int) -> None:
        self.file.add_misuse(**fields)

    def refresh(self) -> MisuseLog:
        self.path.write_bytes(self.file.data)
        self.log.refresh()
        return self.log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_a_misuse_has_its_fields_and_age(log: Log) -> None:
    log.add(
        kind=lib.LT_MISUSE_RELEASED_OTHERS, lock=3, stack=4, tid=11, other=12, count=5, first=SECOND
    )
    (misuse,) = log.refresh().misuses(3 * SECOND)
    assert misuse.kind is MisuseKind.RELEASED_OTHERS
    assert (misuse.lock, misuse.tid, misuse.other, misuse.stack) == (3, 11, 12, 4)
    assert (misuse.count, misuse.ago_s) == (5, 2.0)


def test_misuses_are_in_the_order_of_their_first_time(log: Log) -> None:
    for lock, first in ((1, 30), (2, 10), (3, 20)):
        log.add(**FREE, lock=lock, first=first)
    assert [misuse.lock for misuse in log.refresh().misuses(40)] == [2, 3, 1]
    assert log.log.locks == {1, 2, 3}


def test_two_entries_of_one_misuse_are_one(log: Log) -> None:
    log.add(**FREE | {"count": 2}, lock=1, stack=4, tid=11)
    log.add(**FREE | {"count": 3}, lock=1, stack=4, tid=12)
    log.add(**FREE, lock=1, stack=5)
    log.add(**FREE, lock=2, stack=4)
    log.add(kind=lib.LT_MISUSE_TAKEN_AGAIN, count=1, lock=1, stack=4)
    found = log.refresh().misuses(0)
    assert [(one.lock, one.stack, one.count) for one in found] == [
        (1, 4, 5), (1, 5, 1), (2, 4, 1), (1, 4, 1),
    ]  # fmt: skip
    assert found[0].tid == 11


def test_entries_of_unknown_kinds_and_unfinished_ones_are_left_out(log: Log) -> None:
    log.add(kind=99, count=1, lock=1)
    log.add(kind=lib.LT_MISUSE_RELEASED_FREE, count=0, lock=2)
    assert log.refresh().misuses(0) == ()
    assert log.log.locks == frozenset()


def test_new_misuses_are_read_as_soon_as_the_library_counts_them(log: Log) -> None:
    log.add(**FREE, lock=1)
    log.refresh()
    log.add(**FREE, lock=2)
    assert log.refresh().locks == {1, 2}
    log.file.header.misuses_changed -= 1
    log.file.header.misuses.count -= 1
    log.refresh()
    log.file.header.misuses.count += 1
    assert log.refresh().locks == {1}
