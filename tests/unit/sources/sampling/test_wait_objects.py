"""Sampled memory may have any content: only memory that fits in every field is an object."""

from __future__ import annotations

import ctypes
import os
import random
import struct

import pytest
from msgspec.structs import replace

from locktop.collector.linux import futex, process_memory, syscalls
from locktop.collector.linux.futex import FutexWait
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import Kind, Lock
from locktop.collector.sources.sampling import nptl_objects
from locktop.collector.sources.sampling.builder import SamplingBuilder
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, SyncObject
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.wait_estimator import WaitEstimator
from locktop.collector.sources.sampling.wait_objects import SampledWaitReader
from locktop.collector.symbols.resolver import Resolver

TIDS = {100, 101, 102}
MUTEX = FutexWait(0x1000, 2, private=True, plain=True, inherits=False, timed=False)


def context(before: bytes, after: bytes) -> bytes:
    return before.rjust(BEFORE, b"\0") + after.ljust(AFTER, b"\0")


def mutex(
    lock: int = 2,
    count: int = 0,
    owner: int = 101,
    users: int = 1,
    kind: int = 0,
    rest: bytes = b"",
) -> bytes:
    return context(b"", struct.pack("=IIIIi", lock, count, owner, users, kind) + rest)


COND = FutexWait(0x1000 + 40, 0, private=True, plain=False, inherits=False, timed=True)


def cond(sequence: int, start: int, sizes: tuple[int, int], began_with: int, waiters: int) -> bytes:
    before = struct.pack("=QQIIiiII", sequence, start, 0, 0, *sizes, began_with << 2, waiters << 3)
    return context(before, bytes(8))


LATER_COND = COND._replace(address=0x1000 + 32)


def later_cond(
    sequence: int, start: int, sizes: tuple[int, int], began_with: int, waiters: int, signals: int
) -> bytes:
    """A condition of glibc 2.41."""
    before = struct.pack("=QQiiII", sequence, start, *sizes, began_with << 2, waiters << 3)
    return context(before, struct.pack("=IIQ", signals, 0, 0))


# ---- system calls ----


def test_a_call_is_parsed() -> None:
    assert syscalls.parse(b"running\n") is None
    assert syscalls.parse(b"-1 0x7f 0x10\n") == SystemCall(-1, (), 0x7F, 0x10)
    line = b"202 0x10 0x80 0x2 0x0 0x0 0x0 0x7f 0x11\n"
    assert syscalls.parse(line) == SystemCall(202, (0x10, 0x80, 2, 0, 0, 0), 0x7F, 0x11)


@pytest.mark.parametrize("said", [b"", b"1 2 3 4", b"x 0x1 0x2", b"1 0x1 0xg", b"\xff\xfe", b"9"])
def test_a_garbled_call_is_a_value_error(said: bytes) -> None:
    try:
        syscalls.parse(said)
    except ValueError:
        return
    pytest.fail("it was taken for something")


def test_an_unknown_call_is_named_by_its_number() -> None:
    assert syscalls.name(99999) == "syscall 99999"
    assert syscalls.name(-1) == ""


@pytest.mark.parametrize("operation", [1, 3, 5, 10, 12, 77, 0xFFFFFFFF])
def test_a_futex_call_that_wakes_is_no_wait(operation: int) -> None:
    sleep_key = next(n for n in range(1000) if syscalls.name(n) == "futex")
    assert (
        futex.parse_wait(os.getpid(), SystemCall(sleep_key, (0x10, operation, 2, 0, 0, 0), 0, 0))
        is None
    )
    wait = futex.parse_wait(os.getpid(), SystemCall(sleep_key, (0x10, 128, 2, 0, 0, 0), 0, 0))
    assert wait == FutexWait(0x10, 2, private=True, plain=True, inherits=False, timed=False)


# ---- glibc's objects ----


def test_a_mutex_is_recognized_by_all_its_fields() -> None:
    assert nptl_objects.recognise(MUTEX, mutex(), TIDS) == SyncObject(Kind.MUTEX, 0x1000, 101)
    assert nptl_objects.recognise(MUTEX, mutex(kind=1, count=7), TIDS) == SyncObject(
        Kind.MUTEX, 0x1000, 101, recursive=True
    )


@pytest.mark.parametrize(
    ("wait", "memory_"),
    [
        (MUTEX, mutex(lock=1)),
        (MUTEX, mutex(lock=0)),
        (MUTEX, mutex(owner=0)),
        (MUTEX, mutex(users=0)),
        (MUTEX, mutex(count=2)),
        (MUTEX, mutex(kind=0x1000)),
        (MUTEX, mutex(kind=128)),  # shared, but waited for as private
        (MUTEX, mutex(kind=32)),
        (MUTEX._replace(value=1), mutex()),
        (MUTEX._replace(address=0x1004), mutex()),
        (MUTEX, b""),
        (MUTEX, mutex()[:60]),
        # A lock of a C FILE: a pointer names the owner, and the next lock follows.
        (MUTEX, mutex(owner=0x2A6C0, users=0x7FF5)),
        (MUTEX, mutex(rest=struct.pack("=4xQQ", 0, 0x7FF545696427))),
        (MUTEX, mutex(rest=struct.pack("=4xQQ", 10000, 0))),
        # A mutex of Rust: no time limit, yet a bit set.
        (MUTEX._replace(plain=False), mutex()),
    ],
)
def test_a_wrong_field_is_no_mutex(wait: FutexWait, memory_: bytes) -> None:
    assert nptl_objects.recognise(wait, memory_, TIDS) is None


@pytest.mark.parametrize(("kind", "is_once_wait"), [(32, True), (512 | 32, True), (0, False)])
def test_a_priority_inheriting_mutex_is_recognized_by_its_kind(
    kind: int, is_once_wait: bool
) -> None:
    """PTHREAD_MUTEX_NORMAL is a plain mutex without elision: 512."""
    wait = MUTEX._replace(value=0, inherits=True)
    found = nptl_objects.recognise(wait, mutex(lock=0x80000000 | 101, kind=kind), TIDS)
    assert found == SyncObject(Kind.MUTEX if is_once_wait else Kind.FUTEX, 0x1000, 101)


def test_a_call_by_other_code_is_no_glibc_object() -> None:
    assert nptl_objects.recognise(MUTEX, mutex(), TIDS, may_wait_at=lambda pc: False) is None


def test_a_once_routine_is_recognized_by_its_call_site() -> None:
    wait = FutexWait(0x1004, 0x11, private=True, plain=True, inherits=False, timed=False, pc=0x70)
    word = context(b"", struct.pack("=I", 0x11))

    def kind(wait: FutexWait, memory_: bytes = word, pc: int = 0x70) -> Kind | None:
        found = nptl_objects.recognise(wait, memory_, TIDS, is_once=lambda at: at == pc)
        return found.kind if found is not None else None

    assert kind(wait) is Kind.ONCE
    assert kind(wait, pc=0x71) is None, "another function"
    assert kind(wait._replace(value=0x12), context(b"", struct.pack("=I", 0x12))) is None, (
        "the wait is over"
    )
    assert kind(wait, context(b"", struct.pack("=I", 0x12))) is None, "the wait is over by now"
    assert kind(wait._replace(private=False)) is None
    assert kind(wait._replace(timed=True)) is None
    assert kind(wait._replace(plain=False)) is None


@pytest.mark.parametrize(
    "memory_",
    [
        cond(2, 0, (0, 0), 0, 1),
        cond(2 * 9, 0, (-8, 0), 0, 1),  # eight waiters gave up before
        cond(2 * 9 + 1, 2 * 4 + 1, (2, -1), 3, 4),  # one of three was signalled; one of two gave up
    ],
)
def test_a_condition_variable_is_recognized(memory_: bytes) -> None:
    assert nptl_objects.recognise(COND, memory_, TIDS, 36) == SyncObject(Kind.COND, 0x1000)
    later = nptl_objects.recognise(COND, memory_, TIDS, 41)
    assert later is None or later.address != 0x1000, "in the layout of glibc 2.41"
    assert nptl_objects.recognise(COND._replace(value=2), memory_, TIDS, 36) is None
    assert nptl_objects.recognise(COND._replace(plain=True), memory_, TIDS, 36) is None


@pytest.mark.parametrize(
    "memory_",
    [
        cond(0, 0, (0, 0), 0, 0),
        cond(0, 0, (0, 0), 1, 1),  # more threads left than came
        cond(4, 0, (0, 0), 0, 1),  # more threads wait than came
        cond(4, 0, (1, 0), 0, 2),
        cond(4, 1, (0, 0), 0, 2),
        cond(4, 0, (0, 1), 0, 2),
        cond(2, 0, (-2, 0), 0, 1),
        cond(2, 0, (0, 0), 0, 1 << 23),
    ],
)
def test_inconsistent_counts_are_no_condition_variable(memory_: bytes) -> None:
    assert nptl_objects.recognise(COND, memory_, TIDS, 36) is None


@pytest.mark.parametrize(
    ("memory_", "value"),
    [
        (later_cond(2, 0, (0, 0), 0, 1, 0), 0),
        (later_cond(7, 0, (2, 0), 3, 2, 0), 0),  # one of three was signalled
        (later_cond(2 * 9, 4, (0, 0), 4, 1, 4), 4),  # a second group
        (later_cond(2 * 9 + 1, 4, (3, 0), 5, 4, 4), 2),  # asleep since before the group was full
    ],
)
def test_a_later_condition_variable_is_recognized(memory_: bytes, value: int) -> None:
    wait = LATER_COND._replace(value=value)
    assert nptl_objects.recognise(wait, memory_, TIDS, 41) == SyncObject(Kind.COND, 0x1000)
    assert nptl_objects.recognise(wait, memory_, TIDS, 36) is None
    assert nptl_objects.recognise(wait._replace(plain=True), memory_, TIDS, 41) is None
    assert nptl_objects.recognise(wait._replace(private=False), memory_, TIDS, 41) is None


def test_a_later_condition_variable_is_no_semaphore_without_a_unit() -> None:
    """The other word of signals lies where a semaphore has its number of waiters."""
    before = struct.pack("=QQiiII", 2, 0, 0, 0, 0, 1 << 3)
    memory_ = context(before, struct.pack("=IIQ", 0, 6, 0))
    assert nptl_objects.recognise(LATER_COND, memory_, TIDS, 41) == SyncObject(Kind.COND, 0x1000)
    alone = context(b"", struct.pack("=IIQ", 0, 6, 0))
    found = nptl_objects.recognise(LATER_COND, alone, TIDS, 41)
    assert found is not None
    assert found.kind is Kind.SEM


@pytest.mark.parametrize(
    ("memory_", "value"),
    [
        (later_cond(0, 0, (0, 0), 0, 0, 0), 0),
        (later_cond(4, 0, (0, 0), 0, 1, 0), 0),  # more threads wait than came
        (later_cond(2, 4, (0, 0), 0, 1, 0), 0),
        (later_cond(4, 0, (0, 1), 0, 2, 0), 0),
        (later_cond(7, 0, (2, 0), 3, 3, 1), 0),  # a signal is there
        (later_cond(7, 0, (2, 0), 3, 3, 0), 1),
        (later_cond(2, 0, (0, 0), 0, 1, 0)[:-48] + b"\1" * 48, 0),
    ],
)
def test_inconsistent_counts_are_no_later_condition(memory_: bytes, value: int) -> None:
    wait = LATER_COND._replace(value=value)
    assert nptl_objects.recognise(wait, memory_, TIDS, 41) is None


@pytest.mark.parametrize(
    ("words", "parties"),
    [
        ((5, 4, 4, 0, 4), 4),
        ((5, 4, 4, 0, 2), 4),  # two threads have not left the last round
        ((5, 3, 4, 0, 0), 0),
        ((4, 4, 4, 0, 4), 0),
        ((8, 4, 4, 0, 4), 0),
        ((5, 4, 4, 0, 5), 0),
        ((5, 4, 4, 128, 4), 0),
    ],
)
def test_a_barrier_is_recognized(words: tuple[int, ...], parties: int) -> None:
    wait = FutexWait(0x1004, words[1], private=True, plain=True, inherits=False, timed=False)
    said = struct.pack("=5I", *words)
    found = nptl_objects.recognise(wait, context(said[:4], said[4:]), TIDS)
    assert found == (SyncObject(Kind.BARRIER, 0x1000, parties=parties) if parties else None)


def test_random_memory_is_never_a_held_lock() -> None:
    chance = random.Random(5)
    for _ in range(20_000):
        wait = FutexWait(
            chance.randrange(0, 1 << 40, 4), chance.choice((0, 1, 2, 3, chance.getrandbits(32))),
            chance.random() < 0.8, chance.random() < 0.5, chance.random() < 0.1, False,
        )  # fmt: skip
        found = nptl_objects.recognise(wait, chance.randbytes(BEFORE + AFTER), TIDS, 36)
        assert found is None or not found.owner


# ---- between two owners ----


def test_a_mutex_is_recognized_between_two_owners() -> None:
    """A known mutex stays a mutex while nothing else lies at its address."""
    buffer = ctypes.create_string_buffer(256)
    address = (ctypes.addressof(buffer) + 127) & ~63
    sleep_key = next(n for n in range(1000) if syscalls.name(n) == "futex")
    waits = SampledWaitReader(os.getpid(), 36, lambda pc: False)

    def seen(seq: int, *words: int) -> tuple[Kind, int]:
        data = struct.pack("=IIIIi4xQQ", *words)
        ctypes.memmove(address, data, len(data))
        call = SystemCall(sleep_key, (address, 128, 2, 0, 0, 0), 0, 0)
        sample = Sample(100, 100, 1, "a", "S", 0.0, 0.0, call, seq, 0.0)
        other = replace(sample, tid=101, life=2, call=None)
        (wait,) = waits.read({100: sample, 101: other}, lambda _: True).values()
        return wait.sync_object.kind, wait.sync_object.owner

    free, held = (0, 0, 0, 0, 0, 0, 0), (2, 0, 101, 1, 0, 0, 0)
    assert seen(1, *free) == (Kind.FUTEX, 0)
    assert seen(1, *held) == (Kind.MUTEX, 101)
    assert seen(2, *free) == (Kind.MUTEX, 0)
    assert seen(3, 1, 0, 0, 0, 0, 0, 0) == (Kind.MUTEX, 0)
    assert seen(4, 2, 0, 101, 1, 0x200000, 0, 0) == (Kind.FUTEX, 0)
    assert seen(5, 2, 0, 0, 0, 1, 0, 0) == (Kind.FUTEX, 0), "the other mutex is recursive"
    assert seen(6, 2, 0, 0, 0, 0, 7, 7) == (Kind.FUTEX, 0)
    assert seen(7, 9, 0, 0, 0, 0, 0, 0) == (Kind.FUTEX, 0)
    assert seen(8, *free) == (Kind.MUTEX, 0)


# ---- memory ----


def test_unreadable_memory_is_empty() -> None:
    own = b"some bytes of ours"
    address = id(own) + bytes.__basicsize__ - 1
    assert process_memory.read(os.getpid(), address, len(own)) == own
    wanted = [(8, 8), (address, 4), (16, 4), (address + 5, 5)]
    assert process_memory.read_many(os.getpid(), wanted) == [
        b"", b"some", b"", b"bytes",
    ]  # fmt: skip
    assert process_memory.read(os.getpid(), 1 << 62, 8) == b""
    assert process_memory.read(1 << 30, address, 4) == b""
    assert process_memory.read_string(os.getpid(), address, 4) == b"some"


def test_the_version_of_glibc_is_read() -> None:
    version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    recognised = CLibrary(os.getpid()).version
    # Some versions define no symbol.
    assert 0 <= int(version.rpartition(".")[2]) - recognised <= 2


# ---- sums ----


def wait(tid: int, seq: int, since: float, life: int = 1) -> SampledWait:
    return SampledWait(tid, life, seq, since, MUTEX, SyncObject(Kind.MUTEX, 0x1000, 101))


def test_one_wait_through_all_samples_is_exact() -> None:
    sampled = WaitEstimator()
    for now in (10.0, 10.5, 11.5, 12.0):
        sampled.add(now, {100: wait(100, 1, 10.0)})
    (lock,) = sampled.locks.values()
    assert (lock.wait.s, lock.wait.error_s, lock.met, lock.longest_s) == (2.0, 0.0, 1, 2.0)
    assert lock.blame == {101: 2.0}


def test_a_reused_thread_id_begins_anew() -> None:
    sampled = WaitEstimator()
    for now in (10.0, 11.0):
        sampled.add(now, {100: wait(100, 1, 10.0)})
    sampled.forget_threads({2}, {100, 101}, {100, 101})
    sampled.add(12.0, {100: wait(100, 2, 12.0, life=2)})
    sampled.add(13.0, {100: wait(100, 2, 12.0, life=2)})
    (lock,) = sampled.locks.values()
    assert lock.wait.s == 3.0
    assert lock.blame == {0: 1.0, 101: 2.0}
    assert sampled.wait_by_thread[2][Kind.MUTEX] == 1.5


def test_the_ended_owners_with_most_waiters_are_reported() -> None:
    sampled = WaitEstimator()
    for sleep_key in range(3000):
        owner = SyncObject(Kind.MUTEX, 0x1000, 1000 + sleep_key)
        waits = {100: SampledWait(100, 1, sleep_key, 1.0 * sleep_key, MUTEX, owner)}
        sampled.add(1.0 * sleep_key, waits)
        sampled.add(sleep_key + 0.5 + sleep_key / 10_000, waits)
        sampled.forget_threads({1}, {100, 1000}, set())
    (lock,) = sampled.locks.values()
    assert len(lock.blame) < 1100
    assert {0, 1000} <= lock.blame.keys(), "the entry of a living thread stays"
    assert sum(lock.blame.values()) == pytest.approx(lock.wait.s)


def test_an_ongoing_wait_changes_times_alone() -> None:
    sampled, stack = WaitEstimator(), 1 << 33
    resolver = Resolver(os.getpid())
    builder = SamplingBuilder(
        resolver, sampled, lambda wait: wait.since, lambda id_: (), lambda wait: ()
    )
    asleep = Sample(100, 100, 1, "worker", "S", 0.25, 0.0, None, 1, 10.0)
    holder = Sample(101, 101, 2, "holder", "S", 0.5, 0.0, None, 1, 10.0)
    samples, waits = {101: holder, 100: asleep}, {100: wait(100, 1, 10.0)}
    for sleep_key in range(5):
        now = 10.0 + 0.5 * sleep_key
        sampled.add(now, waits)
        waiter, other = builder.threads(samples, waits, {100: stack}, now, 0.5)
        assert waiter.waiting_for is not None
        waits_for = waiter.waiting_for
        assert (waits_for.lock, waits_for.kind, waits_for.stack) == (1, Kind.MUTEX, stack)
        assert (waits_for.duration_s, waits_for.holders) == (now - 10.0, (101,))
        assert waiter.wait_s == ({Kind.MUTEX: now - 10.0} if sleep_key else {})
        assert waiter.cpu_s == 0.25
        assert [held.lock for held in other.holds] == [1]
        if sleep_key:
            assert waiter.time is not None
            assert other.time is not None
            assert (waiter.wait_share, waiter.time.contended, waiter.cpu_share) == (1.0, 1.0, 0.0)
            assert other.time.other == 1.0
        sampled.add(now + 0.01, waits)
        again, _ = builder.threads(samples, waits, {}, now + 0.01, 0.5, is_recheck=True)
        assert again.waiting_for is not None
        assert again.waiting_for.stack == 0
    moved = replace(asleep, cpu_s=0.35, seq=2)
    sampled.add(12.5, {})
    waiter, other = builder.threads({100: moved, 101: holder}, {}, {}, 12.5, 0.5)
    assert waiter.time is not None
    assert (waiter.waiting_for, waiter.cpu_share) == (None, pytest.approx(0.2))
    assert waiter.time.contended == pytest.approx(waiter.wait_share)
    assert other.holds == ()
    resolver.close()


def test_a_lock_without_waiters_stays_the_same_object_until_a_change() -> None:
    sampled, resolver = WaitEstimator(), Resolver(os.getpid())
    builder = SamplingBuilder(
        resolver, sampled, lambda wait: wait.since, lambda id_: (), lambda wait: ()
    )
    at, seen = 10.0, list[Lock]()
    for waits in ({100: wait(100, 1, 10.0)}, {}, {}, {}):
        sampled.add(at, waits)
        seen += builder.locks(waits, at, 0.5)
        at += 0.5
    assert [len(lock.waiters) for lock in seen] == [1, 0, 0, 0]
    assert [lock.rates.wait for lock in seen] == [0.0, 0.5, 0.0, 0.0]
    assert seen[2] is seen[3]
    sampled.forget_threads({1}, {101}, {101})
    (lock,) = builder.locks({}, at, 0.5)
    assert [(blame.tid, blame.wait_s) for blame in lock.blame] == [(0, 0.25)]
    waits = {100: wait(100, 2, at)}
    sampled.add(at, waits)
    (lock,) = builder.locks(waits, at, 0.5)
    assert (lock.contended, lock.waiters) == (2, (100,))
    resolver.close()


def test_sums_of_short_waits_are_right_within_their_error() -> None:
    """Random waits, estimated from samples every 10 ms, many times."""
    chance = random.Random(11)
    off = []
    for _ in range(60):
        at, waits = 0.0, list[tuple[float, float]]()
        while at < 10.0:
            begin = at + chance.expovariate(20)
            at = begin + chance.expovariate(50)
            waits.append((begin, at))
        sampled = WaitEstimator()
        for sleep_key in range(1000):
            now = sleep_key / 100
            found = [seq for seq, (begin, end) in enumerate(waits) if begin <= now < end]
            sampled.add(now + 1.0, {100: wait(100, found[0], 0.0)} if found else {})
        true_s = sum(max(0.0, min(end, 9.99) - begin) for begin, end in waits)
        (lock,) = sampled.locks.values()
        off.append((lock.wait.s - true_s) / lock.wait.error_s)
    assert abs(sum(off) / len(off)) < 0.5, "the estimate has no bias"
    assert sum(one * one for one in off) / len(off) < 1.2, "the stated error is not too small"
