"""A reading reuses unchanged data of the last reading; a fresh reader must agree."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile, key

from locktop.collector.errors import LocktopError
from locktop.collector.native import ffi, lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader, Reading
from locktop.collector.shm.segment import SharedMemory

MUTEX, SEM = key(lib.LT_KIND_MUTEX, 0x1000), key(lib.LT_KIND_SEM, 0x2000)
TIDS = (11, 12, 13)


class Watched:
    """A file of three waiting threads, and a reader that reads the file again and again."""

    def __init__(self, directory: Path) -> None:
        self.file = file = SharedFile()
        self.locks = [
            file.add_lock(lib.LT_KIND_MUTEX, 0x1000),
            file.add_lock(lib.LT_KIND_SEM, 0x2000),
        ]
        stack = file.add_stack([0x10, 0x20])
        self.blocks = [file.add_thread(tid) for tid in TIDS]
        for block in self.blocks:
            entries: list[dict[str, int]] = [
                {"key": MUTEX, "lock": self.locks[0], "acquisitions": 9, "contended": 2},
                {"key": SEM, "lock": self.locks[1], "acquisitions": 5, "signals": 3},
            ]
            file.give_slots(block, 8, entries)
            file.give_sites(block, 8, [{"lock": self.locks[0], "stack": stack, "count": 2}])
            file.hold(block, self.locks[0], MUTEX, lib.LT_HELD_TIMED, 5)
            file.wait(block, self.locks[1], SEM, since=5, stack=stack)
        self.path = file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDWR), str(self.path))
        self.reader = Reader(self.memory, Clock(self.memory.header()))

    def close(self) -> None:
        self.memory.close()

    def write(self) -> None:
        """Write the present content of ``file``."""
        os.pwrite(self.memory.fd, self.file.data, 0)

    def fresh(self) -> Reading:
        """The reading of a fresh reader."""
        return Reader(self.memory, Clock(self.memory.header())).read()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.close()


def same(reading: Reading, fresh: Reading) -> None:
    """Check that both readings are equal except for times."""
    assert [replace(one, now=0) for one in reading.threads] == [
        replace(one, now=0) for one in fresh.threads
    ]
    assert (reading.sites, reading.charges, reading.left_out) == (
        fresh.sites, fresh.charges, fresh.left_out,
    )  # fmt: skip
    assert [row._replace(**CHANGES) for row in reading.rows] == [
        row._replace(**CHANGES) for row in fresh.rows
    ]


#: The figures of a lock that depend on the time between two readings.
CHANGES = dict.fromkeys(
    (
        "changed_acquisitions",
        "changed_contended",
        "changed_signals",
        "changed_wait_ticks",
        "changed_hold_ticks",
    ),
    0,
)


def test_an_unchanged_thread_stays_the_same_object(watched: Watched) -> None:
    first = list(watched.reader.read().threads)
    before = [one.now for one in first]
    again = watched.reader.read()
    assert [one.block.tid for one in first] == list(TIDS)
    assert all(one is other for one, other in zip(first, again.threads, strict=True))
    assert all(one.now > then for one, then in zip(first, before, strict=True))
    same(again, watched.fresh())


def slot(watched: Watched, number: int) -> Any:
    at = watched.blocks[1].counters + number * ffi.sizeof("struct lt_lock_counters")
    return watched.file.struct_at("struct lt_lock_counters", at)


def held(watched: Watched) -> Any:
    return watched.file.struct_at("struct lt_held", watched.blocks[1].held)


def takes_one_in_a_signal_handler(watched: Watched) -> None:
    slot(watched, 0).counts.acquisitions += 1


def posts(watched: Watched) -> None:
    slot(watched, 1).counts.signals += 1


def holds_one_more(watched: Watched) -> None:
    watched.file.hold(watched.blocks[1], watched.locks[1], SEM)


def holds_more_than_its_block_has_room_for(watched: Watched) -> None:
    block = watched.blocks[1]
    block.held_top = 0
    watched.file.make_room_for_held(block, lib.LT_HELD_INLINE + 1)
    watched.file.hold(block, watched.locks[0], MUTEX)


def holds_another(watched: Watched) -> None:
    held(watched).lock = watched.locks[1]


def waits_anew(watched: Watched) -> None:
    watched.blocks[1].wait.seq += 2


def wakes(watched: Watched) -> None:
    watched.blocks[1].wait.key = 0


def ends(watched: Watched) -> None:
    watched.blocks[1].state = lib.LT_THREAD_FREE


def another_has_its_block(watched: Watched) -> None:
    watched.blocks[1].tid, watched.blocks[1].birth = 99, 99


@pytest.mark.parametrize(
    "does",
    [
        takes_one_in_a_signal_handler,
        posts,
        holds_one_more,
        holds_more_than_its_block_has_room_for,
        holds_another,
        waits_anew,
        wakes,
        ends,
        another_has_its_block,
    ],
)
def test_a_changed_thread_is_a_new_object(
    watched: Watched, does: Callable[[Watched], None]
) -> None:
    before = list(watched.reader.read().threads)
    does(watched)
    watched.write()
    now = watched.reader.read()
    same(now, watched.fresh())
    assert [one for one in before if one in now.threads] == [before[0], before[2]]
    assert before[0] is now.threads[0]
    assert before[2] is now.threads[-1]


def test_a_new_epoch_voids_earlier_held_locks(watched: Watched) -> None:
    for block in watched.blocks:
        block.wait.key = 0
    watched.write()
    assert all(one.held for one in watched.reader.read().threads)
    watched.file.control.mode += 1 << 8
    watched.write()
    now = watched.reader.read()
    assert not any(one.held for one in now.threads)
    same(now, watched.fresh())


def test_a_failed_reading_makes_the_next_reading_a_first_one(watched: Watched) -> None:
    watched.reader.read()
    first, last = watched.blocks[0], watched.blocks[2]
    first.wait.seq, (good, last.counters) = 8, (last.counters, len(watched.file.data) + 64)
    watched.write()
    with pytest.raises(LocktopError, match="a thread's tables"):
        watched.reader.read()
    last.counters = good
    watched.write()
    now = watched.reader.read()
    same(now, watched.fresh())
    assert now.threads[0].wait is not None
    assert now.threads[0].wait.seq == 8


def test_a_change_of_any_number_is_read(watched: Watched) -> None:
    """Changes follow in random order, so that each meets the results of others."""
    chance = random.Random(20261122)
    watched.reader.read()
    sound = bytes(watched.file.data)
    spans = [
        (watched.file.offset_of(block) + ffi.offsetof("struct lt_thread", field), size)
        for block in watched.blocks
        for field, size in (("wait", ffi.sizeof("struct lt_wait")), ("held_inline", 64))
    ] + [
        (int(block.counters), 2 * ffi.sizeof("struct lt_lock_counters")) for block in watched.blocks
    ]
    waiting_tids = set()
    for _ in range(400):
        start, size = chance.choice(spans)
        at = start + chance.randrange(size)
        watched.file.data[at] ^= 1 << chance.randrange(8)
        watched.write()
        now = watched.reader.read()
        same(now, watched.fresh())
        waiting_tids.add(tuple(one.block.tid for one in now.threads if one.wait))
        if chance.random() < 0.1:
            watched.file.data[:] = sound
    assert len(waiting_tids) > 1
