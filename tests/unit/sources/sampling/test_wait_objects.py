"""What is read of a process from outside may be anything: it is told only where all of it fits."""

from __future__ import annotations

import ctypes
import os
import random
import struct

import pytest

from locktop.collector.linux import futex, process_memory, syscalls
from locktop.collector.linux.futex import FutexWait
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import Kind, Lock
from locktop.collector.sources.sampling import nptl_objects
from locktop.collector.sources.sampling.builder import SamplingBuilder
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, Object
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.wait_estimator import WaitEstimator
from locktop.collector.sources.sampling.wait_objects import ObjectWait, ObjectWaits
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


# ---- what the kernel says ----


def test_a_call_is_parsed() -> None:
    assert syscalls.parse(b"running\n") is None
    assert syscalls.parse(b"-1 0x7f 0x10\n") == SystemCall(-1, (), 0x7F, 0x10)
    line = b"202 0x10 0x80 0x2 0x0 0x0 0x0 0x7f 0x11\n"
    assert syscalls.parse(line) == SystemCall(202, (0x10, 0x80, 2, 0, 0, 0), 0x7F, 0x11)


@pytest.mark.parametrize("said", [b"", b"1 2 3 4", b"x 0x1 0x2", b"1 0x1 0xg", b"\xff\xfe", b"9"])
def test_garbage_is_an_error_of_value(said: bytes) -> None:
    try:
        syscalls.parse(said)
    except ValueError:
        return
    pytest.fail("it was taken for something")


def test_a_number_without_a_name_is_told_as_one() -> None:
    assert syscalls.name(99999) == "syscall 99999"
    assert syscalls.name(-1) == ""


@pytest.mark.parametrize("operation", [1, 3, 5, 10, 12, 77, 0xFFFFFFFF])
def test_a_futex_call_that_wakes_is_no_wait(operation: int) -> None:
    number = next(n for n in range(1000) if syscalls.name(n) == "futex")
    assert (
        futex.parse_wait(os.getpid(), SystemCall(number, (0x10, operation, 2, 0, 0, 0), 0, 0))
        is None
    )
    wait = futex.parse_wait(os.getpid(), SystemCall(number, (0x10, 128, 2, 0, 0, 0), 0, 0))
    assert wait == FutexWait(0x10, 2, private=True, plain=True, inherits=False, timed=False)


# ---- glibc's objects ----


def test_a_mutex_is_known_by_all_that_is_in_it() -> None:
    assert nptl_objects.told(MUTEX, mutex(), TIDS) == Object(Kind.MUTEX, 0x1000, 101)
    assert nptl_objects.told(MUTEX, mutex(kind=1, count=7), TIDS) == Object(
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
        # A lock of a C file: whose lock it is tells a pointer, and then comes the next one.
        (MUTEX, mutex(owner=0x2A6C0, users=0x7FF5)),
        (MUTEX, mutex(rest=struct.pack("=4xQQ", 0, 0x7FF545696427))),
        (MUTEX, mutex(rest=struct.pack("=4xQQ", 10000, 0))),
        # Rust's: no time limit, yet a bit set.
        (MUTEX._replace(plain=False), mutex()),
    ],
)
def test_a_field_that_does_not_fit_tells_that_it_is_none(wait: FutexWait, memory_: bytes) -> None:
    assert nptl_objects.told(wait, memory_, TIDS) is None


@pytest.mark.parametrize(("kind", "is_one"), [(32, True), (512 | 32, True), (0, False)])
def test_one_that_lends_priority_is_known_by_its_kind(kind: int, is_one: bool) -> None:
    """PTHREAD_MUTEX_NORMAL is a plain one that may not be elided: 512."""
    wait = MUTEX._replace(value=0, inherits=True)
    found = nptl_objects.told(wait, mutex(lock=0x80000000 | 101, kind=kind), TIDS)
    assert found == Object(Kind.MUTEX if is_one else Kind.FUTEX, 0x1000, 101)


def test_what_others_call_is_none_of_its_objects() -> None:
    assert nptl_objects.told(MUTEX, mutex(), TIDS, waits_at=lambda pc: False) is None


def test_a_routine_that_runs_once_is_known_by_where_the_call_is_made() -> None:
    wait = FutexWait(0x1004, 0x11, private=True, plain=True, inherits=False, timed=False, pc=0x70)
    word = context(b"", struct.pack("=I", 0x11))

    def kind(wait: FutexWait, memory_: bytes = word, pc: int = 0x70) -> Kind | None:
        found = nptl_objects.told(wait, memory_, TIDS, is_once=lambda at: at == pc)
        return found.kind if found is not None else None

    assert kind(wait) is Kind.ONCE
    assert kind(wait, pc=0x71) is None, "another function"
    assert kind(wait._replace(value=0x12), context(b"", struct.pack("=I", 0x12))) is None, "is over"
    assert kind(wait, context(b"", struct.pack("=I", 0x12))) is None, "is over by now"
    assert kind(wait._replace(private=False)) is None
    assert kind(wait._replace(timed=True)) is None
    assert kind(wait._replace(plain=False)) is None


@pytest.mark.parametrize(
    "memory_",
    [
        cond(2, 0, (0, 0), 0, 1),
        cond(2 * 9, 0, (-8, 0), 0, 1),  # eight gave up before
        cond(2 * 9 + 1, 2 * 4 + 1, (2, -1), 3, 4),  # of three one was signalled; of two one gave up
    ],
)
def test_a_condition(memory_: bytes) -> None:
    assert nptl_objects.told(COND, memory_, TIDS, 36) == Object(Kind.COND, 0x1000)
    assert nptl_objects.told(COND, memory_, TIDS, 41) is None
    assert nptl_objects.told(COND._replace(value=2), memory_, TIDS, 36) is None
    assert nptl_objects.told(COND._replace(plain=True), memory_, TIDS, 36) is None


@pytest.mark.parametrize(
    "memory_",
    [
        cond(0, 0, (0, 0), 0, 0),
        cond(0, 0, (0, 0), 1, 1),  # more left than came
        cond(4, 0, (0, 0), 0, 1),  # more wait than there are
        cond(4, 0, (1, 0), 0, 2),
        cond(4, 1, (0, 0), 0, 2),
        cond(4, 0, (0, 1), 0, 2),
        cond(2, 0, (-2, 0), 0, 1),
        cond(2, 0, (0, 0), 0, 1 << 23),
    ],
)
def test_nearly_a_condition(memory_: bytes) -> None:
    assert nptl_objects.told(COND, memory_, TIDS, 36) is None


@pytest.mark.parametrize(
    ("words", "parties"),
    [
        ((5, 4, 4, 0, 4), 4),
        ((5, 4, 4, 0, 2), 4),  # two have not left the round before
        ((5, 3, 4, 0, 0), 0),
        ((4, 4, 4, 0, 4), 0),
        ((8, 4, 4, 0, 4), 0),
        ((5, 4, 4, 0, 5), 0),
        ((5, 4, 4, 128, 4), 0),
    ],
)
def test_a_barrier(words: tuple[int, ...], parties: int) -> None:
    wait = FutexWait(0x1004, words[1], private=True, plain=True, inherits=False, timed=False)
    said = struct.pack("=5I", *words)
    found = nptl_objects.told(wait, context(said[:4], said[4:]), TIDS)
    assert found == (Object(Kind.BARRIER, 0x1000, parties=parties) if parties else None)


def test_random_memory_is_never_taken_for_a_lock_that_is_held() -> None:
    chance = random.Random(5)
    for _ in range(20_000):
        wait = FutexWait(
            chance.randrange(0, 1 << 40, 4), chance.choice((0, 1, 2, 3, chance.getrandbits(32))),
            chance.random() < 0.8, chance.random() < 0.5, chance.random() < 0.1, False,
        )  # fmt: skip
        found = nptl_objects.told(wait, chance.randbytes(BEFORE + AFTER), TIDS, 36)
        assert found is None or not found.owner


# ---- between two owners ----


def test_a_mutex_is_known_between_two_owners() -> None:
    """Where it was one before, and nothing else lies there by now."""
    place = ctypes.create_string_buffer(256)
    address = (ctypes.addressof(place) + 127) & ~63
    number = next(n for n in range(1000) if syscalls.name(n) == "futex")
    waits = ObjectWaits(os.getpid(), 36, lambda pc: False)

    def seen(seq: int, *words: int) -> tuple[Kind, int]:
        data = struct.pack("=IIIIi4xQQ", *words)
        ctypes.memmove(address, data, len(data))
        call = SystemCall(number, (address, 128, 2, 0, 0, 0), 0, 0)
        sample = Sample(100, 100, 1, "a", "S", 0.0, 0.0, call, seq, 0.0)
        other = sample._replace(tid=101, life=2, call=None)
        (wait,) = waits.of({100: sample, 101: other}, lambda _: True).values()
        return wait.what.kind, wait.what.owner

    free, held = (0, 0, 0, 0, 0, 0, 0), (2, 0, 101, 1, 0, 0, 0)
    assert seen(1, *free) == (Kind.FUTEX, 0)
    assert seen(1, *held) == (Kind.MUTEX, 101)
    assert seen(2, *free) == (Kind.MUTEX, 0)
    assert seen(3, 1, 0, 0, 0, 0, 0, 0) == (Kind.MUTEX, 0)
    assert seen(4, 2, 0, 101, 1, 0x200000, 0, 0) == (Kind.FUTEX, 0)
    assert seen(5, 2, 0, 0, 0, 1, 0, 0) == (Kind.FUTEX, 0), "that one is recursive"
    assert seen(6, 2, 0, 0, 0, 0, 7, 7) == (Kind.FUTEX, 0)
    assert seen(7, 9, 0, 0, 0, 0, 0, 0) == (Kind.FUTEX, 0)
    assert seen(8, *free) == (Kind.MUTEX, 0)


# ---- memory ----


def test_what_cannot_be_read_is_empty() -> None:
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


def test_the_version_of_glibc() -> None:
    version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    told = CLibrary(os.getpid()).version
    # Not each version defines a symbol of its own.
    assert 0 <= int(version.rpartition(".")[2]) - told <= 2


# ---- sums ----


def wait(tid: int, seq: int, since: float, life: int = 1) -> ObjectWait:
    return ObjectWait(tid, life, seq, since, MUTEX, Object(Kind.MUTEX, 0x1000, 101))


def test_one_wait_through_all_samples_is_exact() -> None:
    sampled = WaitEstimator()
    for now in (10.0, 10.5, 11.5, 12.0):
        sampled.add(now, {100: wait(100, 1, 10.0)})
    (lock,) = sampled.locks.values()
    assert (lock.wait.s, lock.wait.error_s, lock.met, lock.longest_s) == (2.0, 0.0, 1, 2.0)
    assert lock.blame == {101: 2.0}


def test_another_thread_with_the_id_of_one_that_ended_begins_anew() -> None:
    sampled = WaitEstimator()
    for now in (10.0, 11.0):
        sampled.add(now, {100: wait(100, 1, 10.0)})
    sampled.forget_threads({2}, {100, 101}, {100, 101})
    sampled.add(12.0, {100: wait(100, 2, 12.0, life=2)})
    sampled.add(13.0, {100: wait(100, 2, 12.0, life=2)})
    (lock,) = sampled.locks.values()
    assert lock.wait.s == 3.0
    assert lock.blame == {0: 1.0, 101: 2.0}
    assert sampled.by_thread[2][Kind.MUTEX] == 1.5


def test_of_many_owners_that_ended_those_waited_for_most_are_told() -> None:
    sampled = WaitEstimator()
    for number in range(3000):
        owner = Object(Kind.MUTEX, 0x1000, 1000 + number)
        waits = {100: ObjectWait(100, 1, number, 1.0 * number, MUTEX, owner)}
        sampled.add(1.0 * number, waits)
        sampled.add(number + 0.5 + number / 10_000, waits)
        sampled.forget_threads({1}, {100, 1000}, set())
    (lock,) = sampled.locks.values()
    assert len(lock.blame) < 1100
    assert {0, 1000} <= lock.blame.keys(), "one that lives stays"
    assert sum(lock.blame.values()) == pytest.approx(lock.wait.s)


def test_a_thread_that_waits_on_differs_in_its_times_alone() -> None:
    sampled, stack = WaitEstimator(), 1 << 33
    resolver = Resolver(os.getpid())
    picture = SamplingBuilder(resolver, sampled, lambda id_: (), lambda wait: ())
    asleep = Sample(100, 100, 1, "worker", "S", 0.25, 0.0, None, 1, 10.0)
    holder = Sample(101, 101, 2, "holder", "S", 0.5, 0.0, None, 1, 10.0)
    samples, waits = {101: holder, 100: asleep}, {100: wait(100, 1, 10.0)}
    for number in range(5):
        now = 10.0 + 0.5 * number
        sampled.add(now, waits)
        waiter, other = picture.threads(samples, waits, {100: stack}, now, 0.5)
        assert waiter.waiting_for is not None
        waits_for = waiter.waiting_for
        assert (waits_for.lock, waits_for.kind, waits_for.stack) == (1, Kind.MUTEX, stack)
        assert (waits_for.duration_s, waits_for.holders) == (now - 10.0, (101,))
        assert waiter.wait_s == ({Kind.MUTEX: now - 10.0} if number else {})
        assert waiter.cpu_s == 0.25
        assert [held.lock for held in other.holds] == [1]
        if number:
            assert waiter.time is not None
            assert other.time is not None
            assert (waiter.wait_share, waiter.time.contended, waiter.cpu_share) == (1.0, 1.0, 0.0)
            assert other.time.other == 1.0
        sampled.add(now + 0.01, waits)
        again, _ = picture.threads(samples, waits, {}, now + 0.01, 0.5, again=True)
        assert again.waiting_for is not None
        assert again.waiting_for.stack == 0
    moved = asleep._replace(cpu_s=0.35, seq=2)
    sampled.add(12.5, {})
    waiter, other = picture.threads({100: moved, 101: holder}, {}, {}, 12.5, 0.5)
    assert waiter.time is not None
    assert (waiter.waiting_for, waiter.cpu_share) == (None, pytest.approx(0.2))
    assert waiter.time.contended == pytest.approx(waiter.wait_share)
    assert other.holds == ()
    resolver.close()


def test_a_lock_that_nobody_waits_for_is_the_same_object_until_something_of_it_changes() -> None:
    sampled, resolver = WaitEstimator(), Resolver(os.getpid())
    picture = SamplingBuilder(resolver, sampled, lambda id_: (), lambda wait: ())
    at, seen = 10.0, list[Lock]()
    for waits in ({100: wait(100, 1, 10.0)}, {}, {}, {}):
        sampled.add(at, waits)
        seen += picture.locks(waits, at, 0.5)
        at += 0.5
    assert [len(lock.waiters) for lock in seen] == [1, 0, 0, 0]
    assert [lock.rates.wait for lock in seen] == [0.0, 0.5, 0.0, 0.0]
    assert seen[2] is seen[3]
    sampled.forget_threads({1}, {101}, {101})
    (lock,) = picture.locks({}, at, 0.5)
    assert [(blame.tid, blame.wait_s) for blame in lock.blame] == [(0, 0.25)]
    waits = {100: wait(100, 2, at)}
    sampled.add(at, waits)
    (lock,) = picture.locks(waits, at, 0.5)
    assert (lock.contended, lock.waiters) == (2, (100,))
    resolver.close()


def test_sums_of_short_waits_are_right_within_their_error() -> None:
    """Waits that begin and end at any time, told by samples every 10 ms, many times over."""
    chance = random.Random(11)
    off = []
    for _ in range(60):
        at, waits = 0.0, list[tuple[float, float]]()
        while at < 10.0:
            begin = at + chance.expovariate(20)
            at = begin + chance.expovariate(50)
            waits.append((begin, at))
        sampled = WaitEstimator()
        for number in range(1000):
            now = number / 100
            found = [seq for seq, (begin, end) in enumerate(waits) if begin <= now < end]
            sampled.add(now + 1.0, {100: wait(100, found[0], 0.0)} if found else {})
        true_s = sum(max(0.0, min(end, 9.99) - begin) for begin, end in waits)
        (lock,) = sampled.locks.values()
        off.append((lock.wait.s - true_s) / lock.wait.error_s)
    assert abs(sum(off) / len(off)) < 0.5, "without bias"
    assert sum(one * one for one in off) / len(off) < 1.2, "the error is not told too small"
