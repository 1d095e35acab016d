"""The sums of one reading, which grow with their tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.native import lib
from locktop.collector.shm import layout, table_sums
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import ChargeRecord, SiteSum
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.shm.table_sums import ScratchBuffer, TableSums

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)


def open_file(file: SharedFile, directory: Path) -> SharedMemory:
    path = file.save(directory)
    return SharedMemory(os.open(path, os.O_RDONLY), str(path))


def new_sums(directory: Path) -> TableSums:
    memory = open_file(SharedFile(), directory)
    return TableSums(memory, Clock(memory.header()), ScratchBuffer(), 10)


def site(lock: int, stack: int, ticks: int, blame: int = 0) -> SiteSum:
    return SiteSum(lock, stack, 0, blame, 1, ticks, ticks)


def packed(*sites: SiteSum) -> bytes:
    return b"".join(map(layout.SITE_SUM.pack, sites))


def test_sites_are_by_lock_with_the_longest_wait_first(tmp_path: Path) -> None:
    sums = new_sums(tmp_path)
    sums.add_sites(packed(site(1, 5, 10), site(2, 5, 1), site(1, 6, 30), site(1, 7, 9, blame=1)))
    sums.add_sites(packed(site(1, 5, 15)))
    sums.add_sites(b"")
    charge = layout.CHARGE.pack(ChargeRecord(lock=1, stack=7, holder=3, wait_ticks=9))
    sums.add_charges(charge)
    sums.add_charges(b"")
    waits, charges = sums.sites_by_lock()
    assert {lock: [(one.stack, one.count, one.wait_ticks) for one in found]
            for lock, found in waits.items()} == {
        1: [(6, 1, 30), (5, 2, 25)], 2: [(5, 1, 1)],
    }  # fmt: skip
    assert [(one.stack, one.wait_ticks) for one in charges[1].by_stack] == [(7, 9)]
    assert charges[1].packed == charge
    assert charges.keys() == {1}


def test_more_sites_than_the_table_has_room_for_are_all_kept(tmp_path: Path) -> None:
    sums = new_sums(tmp_path)
    for first in range(0, 3000, 500):
        sums.add_sites(packed(*(site(1, stack, stack) for stack in range(first, first + 500))))
    waits, _ = sums.sites_by_lock()
    assert sorted(one.stack for one in waits[1]) == list(range(3000))


def test_a_scratch_buffer_never_shrinks() -> None:
    scratch = ScratchBuffer()
    first = scratch.size
    assert first >= 1 << 18
    before = scratch.bytes
    scratch.reserve(first)
    assert scratch.bytes is before
    scratch.reserve(first + 1)
    assert scratch.size == first + 1
    scratch.reserve(5)
    assert scratch.size == first + 1


def test_tables_of_any_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The room begins so small that a thread's tables and its sites need more."""
    monkeypatch.setattr(table_sums, "FIRST_SCRATCH", 64)
    monkeypatch.setattr(table_sums, "FIRST_SITES", 4)
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    for tid in (11, 12):
        thread = file.add_thread(tid)
        file.give_slots(thread, 64, [{"key": MUTEX, "lock": lock, "acquisitions": 5}])
        sites = [{"lock": lock, "stack": n + 1, "count": 1, "wait_ticks": n} for n in range(60)]
        file.give_sites(thread, 128, sites)
    memory = open_file(file, tmp_path)
    reading = Reader(memory, Clock(memory.header())).read()
    assert [row.acquisitions for row in reading.rows if row.lock == lock] == [10]
    found = {one.stack: (one.count, one.wait_ticks) for one in reading.sites[lock]}
    assert found == {n + 1: (2, 2 * n) for n in range(60)}
    assert reading.notes == []


def test_counters_of_locks_that_do_not_exist_are_refused_with_a_note(tmp_path: Path) -> None:
    file = SharedFile()
    thread = file.add_thread(11)
    file.give_slots(thread, 4, [{"key": MUTEX, "lock": 1 << 30, "acquisitions": 5}])
    memory = open_file(file, tmp_path)
    reading = Reader(memory, Clock(memory.header())).read()
    assert reading.notes == ["some of a thread's figures were damaged"]


def test_uses_beyond_the_room_are_counted_and_not_listed(tmp_path: Path) -> None:
    file = SharedFile()
    count = lib.LT_USES + 1
    semaphores = [file.add_lock(lib.LT_KIND_SEM, 0x1000 + 64 * n) for n in range(count)]
    for tid, uses in ((11, count), (12, count - 1), (13, 1)):
        entries = [
            {"key": key(lib.LT_KIND_SEM, 0x1000 + 64 * n), "lock": id_, "acquisitions": n + 1}
            for n, id_ in enumerate(semaphores[:uses])
        ]
        file.give_slots(file.add_thread(tid), 2048, entries)
    memory = open_file(file, tmp_path)
    threads = Reader(memory, Clock(memory.header())).read_threads()
    assert [len(threads[tid].uses()) for tid in (11, 12, 13)] == [lib.LT_USES, lib.LT_USES, 1]
    assert [threads[tid].uses_are_complete for tid in (11, 12, 13)] == [False, True, True]
    (use,) = threads[13].uses()
    assert (use.lock, use.kind, use.acquisitions) == (semaphores[0], lib.LT_KIND_SEM, 1)
