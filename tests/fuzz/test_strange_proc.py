"""Damaged lines of /proc, and memory that changes during a read.

The result is right, or nothing, or the documented error. `make fuzz` takes longer (LOCKTOP_FUZZ,
see test_damaged_files.py).
"""

from __future__ import annotations

import os
import random
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fuzz.mutate import damaged, garbled
from locktop.collector.linux import file_descriptors, futex, procfs, syscall_format, syscalls
from locktop.collector.linux.futex import FutexWait
from locktop.collector.linux.thread_files import TaskRecord
from locktop.collector.linux.threads import KernelThread
from locktop.collector.native import ffi, lib
from locktop.collector.sanitize import clean
from locktop.collector.sources.probes.time_accounting import TimeAccounting
from locktop.collector.sources.sampling import nptl_objects
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "500").partition(":")
SEEDS = range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS))
NAME = rb"a) S 1 (b"
STAT = (
    b"4711 (%s) S 1 4711 4711 0 -1 4194304 105 0 2 0 17 4 0 0 20 0 3 0 8123 2899968 400 1844"
    b" 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 9 0 0 0 0 0 0 0 0 0 0\n"
) % NAME
SCHEDSTAT = b"170000000 5000000 42\n"
CALL = b"202 0x7f00c0ffee00 0x80 0x2 0x0 0x0 0x0 0x7ffd00001000 0x7f00c0de0000\n"
TIDS = {100, 101, 102}
#: The offset of the futex word, its value, and whether the wait is plain. Then the bytes before the
#: object, and the bytes from the object on.
OBJECTS = {
    "mutex": (0, 2, True, b"", struct.pack("=IIIIi4xQQ", 2, 0, 101, 1, 0, 0, 0)),
    "recursive": (0, 2, True, b"", struct.pack("=IIIIi4xQQ", 2, 3, 101, 1, 1, 0, 0)),
    "robust": (
        0, 0x80000065, True, b"", struct.pack("=IIIIi4xQQ", 0x80000065, 0, 101, 1, 16, 9, 9),
    ),
    "sem": (0, 0, False, b"", struct.pack("=IIi4x", 0, 2, 0)),
    "barrier": (4, 4, True, struct.pack("=I", 5), struct.pack("=IIiI", 4, 4, 0, 4)),
    "writer": (
        8, 3, False, struct.pack("=II", 3, 0),
        struct.pack("=IIIIIIb7xQI4x", 3, 3, 0, 0, 101, 0, 0, 0, 0),
    ),
    "cond": (40, 0, False, struct.pack("=QQIIiiII", 4, 0, 0, 0, 0, 0, 0, 16), bytes(8)),
}  # fmt: skip


def decimal(word: bytes) -> int | None:
    """Return a decimal number of at most 64 bits, as the kernel writes it; a line may end there."""
    word = word.partition(b"\n")[0]
    value = int(word) if re.fullmatch(rb"[0-9]{1,400}", word) else -1
    return value if 0 <= value < 1 << 64 else None


# ---- lines ----


def test_lines_of_threads() -> None:
    taken = 0
    for seed in SEEDS:
        line = garbled(STAT, seed)
        with suppress(ValueError):
            stat = procfs.parse_stat(line)
            assert len(stat.state) == 1
            assert stat.comm == clean(stat.comm), line
            taken += 1
    assert procfs.parse_stat(STAT).comm == NAME.decode()
    assert taken > len(SEEDS) // 10


def test_system_calls() -> None:
    waits = 0
    for seed in SEEDS:
        line = garbled(CALL, seed)
        try:
            call = syscalls.parse(line)
        except ValueError:
            continue
        if call is None:
            assert line.startswith(b"running")
            continue
        assert len(call.arguments) == (6 if call.number >= 0 else 0)
        assert all(0 <= word < 1 << 64 for word in (*call.arguments, call.sp, call.pc))
        wait = futex.parse_wait(os.getpid(), call)
        if wait is not None:
            waits += 1
            assert 0 <= wait.value < 1 << 32
    assert waits


@pytest.mark.parametrize("name", sorted(syscall_format.FD_CALLS | {*syscall_format.PATH_CALLS} | {
    "poll", "ppoll", "nanosleep", "clock_nanosleep", "wait4", "waitid", "futex_waitv",
}))  # fmt: skip
def test_calls_with_arguments_of_nonsense(name: str) -> None:
    number = next((n for n in range(1000) if syscalls.name(n) == name), None)
    if number is None:
        pytest.skip("no call of this machine")
    chance = random.Random(name)
    own = ffi.new("char[]", chance.randbytes(4096))
    for _ in range(20):
        arguments = tuple(
            chance.choice((
                0, 1, 0xFFFFFFFF, (1 << 64) - 1, 1 << 63, chance.getrandbits(64), 8, 4096,
                int(ffi.cast("uintptr_t", own)) + chance.randrange(4096),
            ))
            for _ in range(6)
        )  # fmt: skip
        call = syscalls.SystemCall(number, arguments, 0, 0)
        said = syscall_format.describe(os.getpid(), call)
        assert said.startswith(f"{name}(")
        assert said == clean(said)
        wait = futex.parse_wait(os.getpid(), call)
        assert wait is None or name == "futex_waitv"


@contextmanager
def file_of(data: bytes) -> Iterator[int]:
    fd = os.memfd_create("line")
    os.write(fd, data)
    try:
        yield fd
    finally:
        os.close(fd)


def read_task(stat: bytes, schedstat: bytes) -> TaskRecord:
    with file_of(stat) as first, file_of(schedstat) as second:
        task = ffi.new("struct lt_task *")
        nobody, own = 1 << 22, [os.dup(first), os.dup(second)]
        files = ffi.new("struct lt_task_files *", (nobody, *own, -1))
        table = ffi.new("struct lt_task_table *", (-1, 1, 2, 2, files, task))
        lib.lt_read_tasks(table, ffi.new("uint32_t[]", [0]), 1, 0)
        lib.lt_forget_task(table, 0)  # closes the files that are still open
    said = {name: getattr(task, name) for name in TaskRecord._fields}
    return TaskRecord(**{**said, "name": bytes(task.name), "call": bytes(task.call)})


def test_lines_read_in_c() -> None:
    """The reader in C reads the same fields, or none."""
    there = counted = 0
    for seed in SEEDS:
        stat, schedstat = garbled(STAT, seed), garbled(SCHEDSTAT, seed)
        raw = read_task(stat, schedstat)
        assert raw.name_size <= len(raw.name)
        fields = stat[stat.rfind(b")") + 2 :].split(b" ")
        if raw.facts & lib.LT_TASK_THERE:
            there += 1
            user, system = decimal(fields[11]), decimal(fields[12])
            assert user is not None
            assert system is not None
            assert raw.cpu_ticks == (user + system) % (1 << 64)
            assert raw.state == fields[0][0]
            assert stat[: stat.rfind(b")")].partition(b"(")[2].startswith(raw.name[: raw.name_size])
        if raw.facts & lib.LT_TASK_DISK:
            assert raw.disk_ticks == decimal(fields[39])
        if raw.facts & lib.LT_TASK_SCHED:
            counted += 1
            words = [decimal(word) for word in schedstat.split(b" ")[:3]]
            assert [raw.ran_ns, raw.queued_ns, raw.runs] == words, schedstat
    assert len(SEEDS) // 10 < there < len(SEEDS)
    assert counted


# ---- names ----


@pytest.mark.parametrize(
    "path", ["some one", " begins", "ends ", "a\nb", "a\rb", "\x1b[31mred", "x) (y"]
)
def test_a_socket_has_all_of_its_path(path: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(tmp_path / path))
        said = file_descriptors.describe(os.getpid(), own.fileno())
        inode = os.fstat(own.fileno()).st_ino
    assert said in (f"unix {clean(str(tmp_path / path))}", f"unix socket {inode}")


def test_a_socket_does_not_speak_for_another(tmp_path: Path) -> None:
    """The kernel writes names of sockets unchanged, with line ends."""
    with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as other:
        inode = os.fstat(own.fileno()).st_ino
        os.chdir(tmp_path)
        other.bind(f"\0x\n0000000000000000: 00000002 00000000 00000000 0001 01 {inode} /not/so")
        said = file_descriptors.describe(os.getpid(), own.fileno())
    assert said in (f"unix socket {inode}", f"socket:[{inode}]")


# ---- memory ----


def identified(name: str, memory: bytes) -> nptl_objects.SyncObject | None:
    address, value, plain, *_ = OBJECTS[name]
    wait = FutexWait(
        0x1000 + address, value, private=True, plain=plain, inherits=False, timed=False
    )
    return nptl_objects.recognise(wait, memory, TIDS, 36)


def memory_of(name: str) -> bytes:
    *_, before, after = OBJECTS[name]
    return before.rjust(BEFORE, b"\0") + after.ljust(AFTER, b"\0")


@pytest.mark.parametrize("name", OBJECTS)
def test_damaged_objects(name: str) -> None:
    """Only a lock has an owner, and only if its owner field has a thread id."""
    sound = identified(name, memory_of(name))
    assert sound is not None
    known = 0
    for seed in SEEDS:
        memory = damaged(memory_of(name), seed, [(BEFORE - 48, 96)])
        found = identified(name, memory)
        if found is None:
            continue
        known += 1
        assert found.kind is sound.kind or not found.owner
        words = struct.unpack(f"={len(memory) // 4}I", memory[: len(memory) // 4 * 4])
        assert found.owner == 0 or found.owner in {word & 0x3FFFFFFF for word in words}
        assert found.parties < 1 << 22
        assert found.readers < 1 << 22
    assert known, "every object was refused, so nothing was tested"


def test_a_mutex_that_changes_while_it_is_read() -> None:
    """A read may mix two states of a mutex; the owner is the owner of one of the two."""
    states = [
        (struct.pack("=IIIIi4xQQ", *words), owner)
        for words, owner in (
            ((2, 0, 101, 1, 0, 0, 0), 101),
            ((2, 0, 0, 0, 0, 0, 0), 0),
            ((0, 0, 0, 0, 0, 0, 0), 0),
            ((1, 0, 0, 0, 0, 0, 0), 0),
            ((1, 0, 102, 1, 0, 0, 0), 102),
            ((2, 0, 102, 1, 0, 0, 0), 102),
            (struct.unpack("=IIIIi4xQQ", os.urandom(40)), 0),
        )
    ]
    wanted = 0
    for old, its_owner in states:
        for new, next_owner in states:
            for at in range(0, 40, 4):
                memory = bytes(BEFORE) + (old[:at] + new[at:]).ljust(AFTER, b"\0")
                found = identified("mutex", memory)
                if found is not None:
                    assert found.owner in (its_owner, next_owner) or not found.owner
                    wanted += 1
    assert wanted


# ---- figures ----


@pytest.mark.parametrize("seed", range(0, len(SEEDS), 50))
def test_times_of_nonsense_add_up(seed: int) -> None:
    """Counters that shrink belong to another thread. The parts of a thread's time add up to 1."""
    chance = random.Random(seed)
    times = TimeAccounting()
    for scan in range(30):
        times.begin(float(scan))
        ran, queued, runs = (chance.choice((0, 1, chance.getrandbits(64))) for _ in range(3))
        disk = chance.choice((None, 0, chance.getrandbits(20)))
        state, at_s = chance.choice("RSDtI?"), scan + chance.random()
        task = KernelThread("a", state, chance.random() * 9, b"a", at_s, ran, queued, runs, disk)
        split = times.time_split(
            chance.randrange(3), chance.choice((task, task, task, None)),
            chance.random(), chance.random(), chance.random() < 0.9,
        )  # fmt: skip
        if split is not None:
            parts = (
                split.cpu, split.runnable, split.contended, split.idle, split.disk, split.other,
            )  # fmt: skip
            assert all(-1e-9 <= part <= 1 + 1e-9 for part in parts), split
            assert abs(sum(parts) - 1.0) < 1e-9, split
