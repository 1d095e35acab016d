"""One reading of a file made by hand: torn readings, rows, sites, held lists and semaphores."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout, reader
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import HEADER, WAIT_AT
from locktop.collector.shm.reader import RawThread, Reader, Reading, newest_of_each_tid
from locktop.collector.shm.segment import SharedMemory

SECOND = 1_000_000_000
MUTEX, SEM = key(lib.LT_KIND_MUTEX, 0x1000), key(lib.LT_KIND_SEM, 0x2000)
TIMED, CONTENDED = lib.LT_HELD_TIMED, lib.LT_HELD_CONTENDED


class Memory(SharedMemory):
    """A file that changes when the sequence count of retired threads is read."""

    def __init__(self, path: Path, meanwhile: Callable[[int], None] | None = None) -> None:
        super().__init__(os.open(path, os.O_RDONLY), str(path))
        self.reads = 0
        self.meanwhile = meanwhile

    def retire_seq(self) -> int:
        self.reads += 1
        if self.meanwhile is not None:
            self.meanwhile(self.reads)
        return super().retire_seq()


class Scans:
    """A file, and a reader of the file."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        self.memory = Memory(self.path)
        self.reader = Reader(self.memory, Clock(self.memory.header()))

    def write(self) -> None:
        self.path.write_bytes(self.file.data)

    def read(self, *wanted: int) -> Reading:
        self.write()
        return self.reader.read(wanted)

    def thread(self, *wanted: int) -> RawThread:
        (thread,) = self.read(*wanted).threads
        return thread


@pytest.fixture
def scans(tmp_path: Path) -> Scans:
    return Scans(tmp_path)


# ---- attempts ----


def test_a_reading_without_ended_threads_takes_one_attempt(scans: Scans) -> None:
    assert not scans.read().torn
    assert scans.memory.reads == 2


def test_a_reading_in_which_a_thread_ended_is_taken_again(scans: Scans) -> None:
    def end_once(reads: int) -> None:
        if reads == 2:
            scans.file.header.retire_seq += 2
            scans.write()

    scans.memory.meanwhile = end_once
    assert not scans.read().torn
    assert scans.memory.reads == 4


def test_a_reading_waits_while_a_thread_is_moved(scans: Scans) -> None:
    scans.file.header.retire_seq = 1

    def moved(reads: int) -> None:
        if reads == 3:
            scans.file.header.retire_seq = 2
            scans.write()

    scans.memory.meanwhile = moved
    assert not scans.read().torn
    assert scans.memory.reads == 4


@pytest.mark.parametrize("step", [0, 2])
def test_a_reading_that_threads_end_in_all_the_time_says_so(scans: Scans, step: int) -> None:
    """With a step of 0, a thread that was killed while another was moved."""
    scans.file.header.retire_seq = 1 - step // 2

    def ends(_: int) -> None:
        scans.file.header.retire_seq += step
        scans.write()

    scans.memory.meanwhile = ends
    assert scans.read().torn
    assert scans.memory.reads == (8 if step else 4)


# ---- rows ----


def test_held_awaited_and_wanted_locks_have_a_row_in_any_case(scans: Scans) -> None:
    file = scans.file
    locks = [file.add_lock(lib.LT_KIND_MUTEX, 0x1000 * n) for n in range(1, 5)]
    block = file.add_thread(11)
    file.hold(block, locks[0], MUTEX)
    file.wait(block, locks[1], MUTEX)
    assert {row.lock for row in scans.read(locks[2]).rows} - {0} == set(locks[:3])
    assert {row.lock for row in scans.read(locks[3], 1 << 20).rows} - {0} == {
        locks[0], locks[1], locks[3]
    }  # fmt: skip


def test_changes_are_those_since_the_last_reading(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_acquisitions=5)
    first = {row.lock: row for row in scans.read().rows}
    scans.file.retired(lock).counts.acquisitions = 12
    new = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x2000, retired_acquisitions=3)
    second = {row.lock: row for row in scans.read().rows}
    assert first[lock].acquisitions == 5
    assert (second[lock].acquisitions, second[lock].changed_acquisitions) == (12, 7)
    assert (second[new].acquisitions, second[new].changed_acquisitions) == (3, 3)


def test_locks_beyond_the_rows_are_counted(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_ROWS", 3)
    for n in range(1, 8):
        scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000 * n, retired_acquisitions=n)
    few = Reader(scans.memory, Clock(scans.memory.header()))
    scans.write()
    reading = few.read()
    assert len(reading.rows) == 3
    assert reading.left_out == 7 + 1 - 3 - 1  # "other locks" were not used


def test_a_lock_that_another_thread_releases_is_noticed(scans: Scans) -> None:
    assert not scans.read().handed_over
    scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, foreign_releases=1)
    assert scans.read().handed_over


def test_the_header_and_the_level_are_those_of_the_reading(scans: Scans) -> None:
    scans.file.header.unloads = 7
    scans.file.control.mode = 3 << 8 | lib.LT_LEVEL_ALL
    reading = scans.read()
    assert reading.header == HEADER.unpack(scans.file.data)
    assert reading.control.mode == 3 << 8 | lib.LT_LEVEL_ALL
    assert reading.notes == []
    assert 0 < reading.locks_now <= reading.now


def test_a_reading_ends_no_later_than_its_process(scans: Scans) -> None:
    for tid in (11, 12):
        scans.file.add_thread(tid)
    reading = scans.read()
    reading.threads[0].now = 3
    reading.end_at(5)
    assert (reading.now, [thread.now for thread in reading.threads]) == (5, [3, 5])
    reading.end_at(4)
    reading.end_at(9)
    assert reading.now == 4


# ---- sites ----


def stacks(reading: Reading, lock: int) -> dict[int, tuple[int, int]]:
    return {one.stack: (one.count, one.wait_ticks) for one in reading.sites.get(lock, [])}


def test_the_sites_of_ended_threads_are_a_chain(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=3)
    scans.file.add_retired_site(lock, 5, 1, 10)
    scans.file.add_retired_site(lock, 6, 2, 30)
    assert stacks(scans.read(), lock) == {5: (1, 10), 6: (2, 30)}


def test_the_blame_of_ended_threads_is_no_wait(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=3)
    for blame in (1, 7):
        scans.file.add_retired_site(lock, 5, 1, 10)
        scans.file.struct_at("struct lt_retired_site", scans.file.lock(lock).sites).blame = blame
    reading = scans.read()
    assert stacks(reading, lock) == {}
    charges = layout.CHARGE.each(reading.charges[lock].packed)
    assert [(one.holder, one.stack) for one in charges] == [(0, 5), (0, 5)]
    assert [one.wait_ticks for one in reading.charges[lock].by_stack] == [20]
    assert sum(one.wait_ticks for one in charges) == 20


def test_the_chain_is_read_again_when_a_thread_has_ended(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=3)
    scans.file.add_retired_site(lock, 5, 1, 10)
    scans.read()
    site = scans.file.struct_at("struct lt_retired_site", scans.file.lock(lock).sites)
    site.count = 2
    assert stacks(scans.read(), lock) == {5: (1, 10)}  # what is known stays valid
    scans.file.header.retire_seq += 2
    assert stacks(scans.read(), lock) == {5: (2, 10)}
    site.count = 3
    assert stacks(scans.read(), lock) == {5: (2, 10)}
    scans.file.add_retired_site(lock, 6, 1, 1)  # a new first site is seen at once
    assert stacks(scans.read(), lock) == {5: (3, 10), 6: (1, 1)}


def test_the_chain_is_not_trusted_while_a_thread_is_moved(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=3)
    scans.file.add_retired_site(lock, 5, 1, 10)
    scans.file.header.retire_seq = 1
    scans.read()
    scans.file.struct_at("struct lt_retired_site", scans.file.lock(lock).sites).count = 2
    assert stacks(scans.read(), lock) == {5: (2, 10)}


def test_a_chain_without_end_has_a_limit(scans: Scans) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_contended=3)
    scans.file.add_retired_site(lock, 5, 1, 10)
    at = scans.file.lock(lock).sites
    scans.file.struct_at("struct lt_retired_site", at).next = at
    assert stacks(scans.read(), lock) == {5: (10_000, 100_000)}


@pytest.mark.parametrize(
    ("flags", "stack", "found"),
    [(TIMED | CONTENDED, 5, {5: (1, 7)}), (TIMED, 5, {}), (TIMED | CONTENDED, 0, {})],
)
def test_a_contended_hold_that_goes_on_adds_the_site_of_its_wait(
    scans: Scans, flags: int, stack: int, found: dict[int, tuple[int, int]]
) -> None:
    lock = scans.file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    block = scans.file.add_thread(11)
    scans.file.hold(block, lock, MUTEX, flags, 1)
    held = scans.file.struct_at("struct lt_held", block.held)
    held.stack, held.wait_ticks = stack, 7
    assert stacks(scans.read(), lock) == found


# ---- threads ----


@pytest.mark.parametrize("is_large", [False, True])
def test_a_thread_has_figures_by_kind(scans: Scans, is_large: bool) -> None:
    """A thread with a long held list is not packed."""
    file, block = scans.file, scans.file.add_thread(11)
    if is_large:
        file.make_room_for_held(block, 40)
    locks = [file.add_lock(lib.LT_KIND_MUTEX, 0x1000), file.add_lock(lib.LT_KIND_SEM, 0x2000),
             file.add_lock(lib.LT_KIND_RWLOCK, 0x3000)]  # fmt: skip
    file.give_slots(block, 8, [
        {"key": MUTEX, "lock": locks[0], "acquisitions": 9, "contended": 2, "wait_ticks": 30},
        {"key": SEM, "lock": locks[1], "acquisitions": 5, "signals": 3, "wait_ticks": 7},
        {"key": key(lib.LT_KIND_RWLOCK, 0x3000), "lock": locks[2], "acquisitions": 100},
    ])  # fmt: skip
    for _ in range(40 if is_large else 1):
        file.hold(block, locks[0], MUTEX)
    thread = scans.thread()
    mutex, sem = lib.LT_KIND_MUTEX, lib.LT_KIND_SEM
    assert (thread.acquisitions, thread.contended) == (109, 2)  # without the semaphore
    assert dict(thread.wait_ticks) == {mutex: 30, sem: 7}
    assert len(thread.held) == (40 if is_large else 1)
    (use,) = thread.uses()
    assert (use.lock, use.kind, use.acquisitions, use.signals) == (locks[1], sem, 5, 3)


def test_the_beginning_of_a_hold_counts_only_where_it_is_set(scans: Scans) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    file.make_room_for_held(block, 10)
    flags = (0, TIMED, lib.LT_HELD_RECORDED, lib.LT_HELD_MET, lib.LT_HELD_SHARED, CONTENDED)
    for number, flag in enumerate(flags, 1):
        file.hold(block, number, MUTEX, flag, 5)
    held = {entry.flags: entry.since for entry in scans.thread().held}
    assert held == {flag: 5 if flag in flags[1:4] else 0 for flag in flags}


def test_an_entry_without_a_key_is_no_hold(scans: Scans) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    for lock, lock_key in ((1, MUTEX), (2, 0), (3, SEM)):
        file.hold(block, lock, lock_key)
    assert [entry.lock for entry in scans.thread().held] == [1, 3]


@pytest.mark.parametrize("count", [lib.LT_HELD_INLINE, lib.LT_HELD_INLINE + 1])
def test_a_held_list_of_any_length_is_read(scans: Scans, count: int) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    file.make_room_for_held(block, count)
    for lock in range(1, count + 1):
        file.hold(block, lock, MUTEX)
    thread = scans.thread()
    assert [entry.lock for entry in thread.held] == list(range(1, count + 1))
    assert scans.reader.holds(thread) == set(range(1, count + 1))


def test_a_held_list_is_no_longer_than_its_room(scans: Scans) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    for lock in (1, 2, 3):
        file.hold(block, lock, MUTEX)
    block.held_size = 2 * ffi.sizeof("struct lt_held")
    assert [entry.lock for entry in scans.thread().held] == [1, 2]
    block.held = 0
    assert scans.thread().held == ()


def test_a_long_held_list_of_another_moment_than_the_wait_voids_the_wait(scans: Scans) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    file.make_room_for_held(block, 50)
    file.hold(block, 1, SEM)
    file.wait(block, lock, MUTEX)
    scans.write()
    assert scans.thread().wait is not None
    real = scans.memory.read

    def read(offset: int, size: int) -> bytes:
        if offset == block.held:
            block.wait.seq = 8
            scans.write()
        return real(offset, size)

    block.wait.seq = 4
    scans.memory.read = read  # type: ignore[method-assign]
    thread = scans.thread()
    assert thread.wait is None
    assert [entry.lock for entry in thread.held] == [1]


def test_a_held_list_in_the_block_is_of_the_moment_of_the_wait(scans: Scans) -> None:
    """Both come with one copy, so a wait that ends afterwards is no contradiction."""
    file, block = scans.file, scans.file.add_thread(11)
    file.hold(block, 1, SEM)
    file.wait(block, 2, MUTEX)
    real = scans.memory.read

    def read(offset: int, size: int) -> bytes:
        data = real(offset, size)
        return bytes(size) if offset == file.offset_of(block) + WAIT_AT else data

    scans.memory.read = read  # type: ignore[method-assign]
    assert scans.thread().wait is not None


def test_a_thread_of_an_older_epoch_holds_only_what_it_waits_with(scans: Scans) -> None:
    file = scans.file
    block = file.add_thread(11, mode=2 << 8 | lib.LT_LEVEL_CONTENDED)
    file.hold(block, 1, MUTEX)
    assert scans.thread().held == ()
    file.wait(block, 2, SEM)
    assert [entry.lock for entry in scans.thread().held] == [1]


def test_the_held_list_of_another_thread_in_the_block_is_empty(scans: Scans) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    file.hold(block, 1, MUTEX)
    thread = scans.thread()
    assert [entry.lock for entry in scans.reader.held_list(thread)] == [1]
    block.birth += 1
    scans.write()
    assert scans.reader.held_list(thread) == ()
    block.birth -= 1
    block.tid += 1
    scans.write()
    assert scans.reader.held_list(thread) == ()


@pytest.mark.parametrize("serials", [(1, 2), (2, 1)])
def test_the_newest_block_of_a_tid_has_the_living_thread(
    scans: Scans, serials: tuple[int, int]
) -> None:
    for birth in serials:
        scans.file.add_thread(11, birth=birth)
    found = newest_of_each_tid(scans.read().threads)
    assert found[11].block.birth == 2
    assert scans.reader.read_threads()[11].block.birth == 2


def waits_for(file: SharedFile, tid: int, lock: int, lock_key: int, holder: int) -> Any:
    block = file.add_thread(tid)
    file.wait(block, lock, lock_key, holder=holder)
    return block


def test_a_waiter_names_the_lock_in_a_held_list_without_an_id(scans: Scans) -> None:
    file, holder = scans.file, scans.file.add_thread(11)
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    file.hold(holder, 0, MUTEX)
    file.hold(holder, 9, SEM)
    waits_for(file, 12, lock, MUTEX, 11)
    assert [entry.lock for entry in scans.read().newest[11].held] == [lock, 9]


@pytest.mark.parametrize(("lock_key", "holder"), [(MUTEX, 13), (SEM, 11)])
def test_a_waiter_for_another_lock_or_holder_names_nothing(
    scans: Scans, lock_key: int, holder: int
) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    file.hold(block, 0, MUTEX)
    waits_for(file, 12, 5, lock_key, holder)
    assert [entry.lock for entry in scans.read().newest[11].held] == [0]


@pytest.mark.parametrize(
    ("acquisitions", "signals", "owned"), [(4, 3, True), (3, 3, False), (5, 3, False)]
)
def test_a_semaphore_belongs_to_a_thread_with_one_acquisition_more_than_posts(
    scans: Scans, acquisitions: int, signals: int, owned: bool
) -> None:
    file, block = scans.file, scans.file.add_thread(11)
    lock, other = (file.add_lock(lib.LT_KIND_SEM, at) for at in (0x2000, 0x3000))
    file.give_slots(block, 4, [
        {"key": SEM, "lock": lock, "acquisitions": acquisitions, "signals": signals},
        {"key": key(lib.LT_KIND_SEM, 0x3000), "lock": other, "acquisitions": 1},
    ])  # fmt: skip
    scans.write()
    assert scans.reader.owned_semaphores([(11, lock), (99, lock)]) == ({lock} if owned else set())
    assert scans.reader.owned_semaphores([(11, other)]) == {other}
    assert scans.reader.owned_semaphores([]) == set()
