"""Damaged, forged, truncated and replaced files of shared memory."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key, record, scan, second_scan_or_error
from support.thoroughness import some

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.native import ffi, lib
from locktop.collector.sources.attach import attach

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
OTHER_MUTEX = key(lib.LT_KIND_MUTEX, 0x2000)
SECOND = 1_000_000_000
#: Every damaged file must give one of these.
SOUND = (Snapshot, LocktopError)


def test_locks_of_several_chunks_are_read(directory: Path) -> None:
    file = SharedFile()
    thread = file.add_thread(os.getpid())
    ids = [file.add_lock(lib.LT_KIND_MUTEX, 0x1000 + 64 * n) for n in range(100)]
    file.give_slots(
        thread,
        128,
        [
            {"key": key(lib.LT_KIND_MUTEX, 0x1000 + 64 * n), "lock": id_, "acquisitions": n + 1}
            for n, id_ in enumerate(ids)
        ],
    )
    found = {lock.id: lock.acquisitions for lock in scan(file, directory).locks}
    assert found == {id_: n + 1 for n, id_ in enumerate(ids)}


def test_a_table_as_large_as_the_file_is_read(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000, retired_acquisitions=3)
    thread, stack = file.add_thread(os.getpid()), file.add_stack([1])
    file.header.limit = hole = 1 << 36
    thread.sites, thread.site_capacity = len(file.data), 1 << 21
    path = file.save(directory)
    os.truncate(path, hole)  # all bytes are zero except for the last entry
    last = ffi.new("struct lt_site *", [lock, stack, 3, SECOND, SECOND])
    with path.open("r+b") as written:
        written.seek(len(file.data) + (thread.site_capacity - 1) * ffi.sizeof("struct lt_site"))
        written.write(bytes(ffi.buffer(last)))
    source = attach(file.pid)
    assert [(s.stack, s.count) for s in source.scan().locks[0].wait_stacks] == [(stack, 3)]
    source.close()


@pytest.mark.parametrize("what", ["sites", "counters", "threads", "locks"])
def test_a_table_larger_than_the_file_is_refused(directory: Path, what: str) -> None:
    """Almost the whole file is a hole, so the size of the file proves nothing."""
    file = SharedFile()
    thread = file.add_thread(os.getpid())
    file.header.limit = hole = 1 << 36
    if what in ("threads", "locks"):
        getattr(file.header, what).count = 1 << 24
        getattr(file.header, what).chunk[1:24] = [len(file.data)] * 23
    else:
        setattr(thread, what, len(file.data))
        capacity = {"sites": "site_capacity", "counters": "counters_capacity"}[what]
        setattr(thread, capacity, 1 << 28)
    path = file.save(directory)
    os.truncate(path, hole)
    found = second_scan_or_error()
    assert isinstance(found, LocktopError)
    assert "damaged" in str(found)


def test_a_replaced_file_is_followed(directory: Path) -> None:
    """exec() makes a new file with the same name for the same process."""
    first, second = SharedFile(), SharedFile()
    for file, uses in ((first, 1), (second, 2)):
        lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
        entry = {"key": MUTEX, "lock": lock, "acquisitions": uses}
        file.give_slots(file.add_thread(os.getpid()), 2, [entry])
    path = first.save(directory)
    source = attach(first.pid)
    assert source.scan().locks[0].acquisitions == 1
    path.unlink()
    second.save(directory)
    assert source.scan().locks[0].acquisitions == 2
    source.close()


def test_a_file_cut_off_while_attached_is_an_error(directory: Path) -> None:
    path = SharedFile().save(directory)
    source = attach(os.getpid())
    source.scan()
    os.truncate(path, 10_000)
    with pytest.raises(LocktopError, match="truncated"):
        source.scan()
    source.close()


@pytest.mark.parametrize("size", [0, 7, 100, 4096, 8191, 8192, 100_000])
def test_a_truncated_file_is_refused(directory: Path, size: int) -> None:
    path = SharedFile().save(directory)
    os.truncate(path, size)
    with pytest.raises(LocktopError, match="truncated"):
        attach(os.getpid())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", 99, "another version"),
        ("byte_order", 0x04030201, "another kind of machine"),
        ("word_bits", 32, "another kind of machine"),
        ("header_size", 8, "damaged"),
        ("pid", 1, "another process"),
        ("start_time", 1, "another process"),
    ],
)
def test_a_foreign_header_is_refused(directory: Path, field: str, value: int, message: str) -> None:
    file = SharedFile()
    setattr(file.header, field, value)
    file.save(directory)
    with pytest.raises(LocktopError, match=message):
        attach(os.getpid())


def test_a_foreign_file_is_refused(directory: Path) -> None:
    file = SharedFile()
    path = directory / file.name
    path.write_bytes(b"something else".ljust(1 << 16, b"."))
    with pytest.raises(LocktopError, match="not a file of locktop's"):
        attach(file.pid)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LocktopError, match="not a regular file"):
        attach(file.pid)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(LocktopError, match="symbolic link"):
        attach(file.pid)


def rich_file() -> SharedFile:
    """A file in which every structure occurs."""
    file = SharedFile()
    stack = file.add_stack([0x10, 0x20, 0x30])
    locks = [file.add_lock(lib.LT_KIND_MUTEX, 0x1000 + n) for n in range(6)]
    file.add_retired_site(locks[0], stack, 1, 5)
    for tid in (os.getpid(), 7, 8):
        thread = file.add_thread(tid)
        entry = {"key": MUTEX, "lock": locks[0], "acquisitions": 9, "contended": 1}
        file.give_slots(thread, 8, [entry])
        file.give_sites(thread, 8, [{"lock": locks[0], "stack": stack, "count": 1}])
        file.give_ring(thread, 8, [record(tid=tid, lock=locks[0], stack=stack)] * 5)
        file.hold(thread, locks[1], OTHER_MUTEX, lib.LT_HELD_TIMED | lib.LT_HELD_CONTENDED, 5)
        file.wait(thread, locks[0], MUTEX, since=5, stack=stack)
    return file


def test_damaged_files_give_a_snapshot_or_an_error_line(directory: Path) -> None:
    chance = random.Random(20261121)
    whole = rich_file()
    path = whole.save(directory)
    used = int(whole.header.used)
    outcomes = []
    for _ in some(range(300), 50):
        data = bytearray(whole.data)
        for _ in range(chance.choice((1, 4, 64))):
            at = chance.randrange(used)
            # Big numbers, small numbers and noise damage sizes, counts and offsets.
            value = chance.choice((b"\xff" * 8, b"\0" * 8, b"\x01\0\0\0", chance.randbytes(8)))
            data[at : at + len(value)] = value
        path.write_bytes(data[: chance.choice((len(data), len(data), used, used // 2))])
        outcomes.append(second_scan_or_error())
    assert all(isinstance(found, SOUND) for found in outcomes)
    assert {type(found) for found in outcomes} == {Snapshot, LocktopError}


def test_a_forged_number_gives_a_snapshot_or_an_error_line(directory: Path) -> None:
    """A 4-byte word of the header or of one thread's block becomes the largest number."""
    whole = rich_file()
    path = whole.save(directory)
    block = int(whole.header.threads.chunk[0])
    starts = [*range(0, whole.header.header_size, 4), *range(block, block + 330, 4)]
    for at in some(starts, 20):
        data = bytearray(whole.data)
        data[at : at + 4] = b"\xff\xff\xff\xff"
        path.write_bytes(data)
        assert isinstance(second_scan_or_error(), SOUND), at
