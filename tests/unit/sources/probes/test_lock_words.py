"""The words of locks whose waiters wait elsewhere, in memory that the test lays out."""

from __future__ import annotations

import struct

import pytest
from unit.builders.records import frame

from locktop.collector.model import Frame
from locktop.collector.sources.probes.lock_words import (
    may_be_in_shared_mutex,
    may_be_lock,
    shared_mutex_words,
    words_of,
)
from locktop.collector.symbols.unwind.first_use import SoughtLock

WORD, LOCK, QUEUE, STACK_OBJECT = 0x7F0000001020, 0x7F0000005008, 0x7F0000009000, 0x7F000000A000
PARKING_LOT, ABSEIL, TBB = "parking_lot waiter", "absl::Mutex waiter", "TBB mutex waiter"
OF_MUTEX = (frame("parking_lot::raw_mutex::RawMutex::lock_slow", "raw_mutex.rs", 1),)
OF_RWLOCK = (frame("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", "raw_rwlock.rs", 1),)


class Memory:
    """Words by address; the others cannot be read."""

    def __init__(self, words: dict[int, int]) -> None:
        self._data = {
            address + number: byte
            for address, word in words.items()
            for number, byte in enumerate(struct.pack("=Q", word))
        }

    def read(self, address: int, size: int) -> bytes:
        """Read up to the first byte that is not there."""
        data = bytearray()
        for next_address in range(address, address + size):
            if next_address not in self._data:
                break
            data.append(self._data[next_address])
        return bytes(data)


def words(
    type_: str, memory: dict[int, int], frames: tuple[Frame, ...] = (), stack: bytes = b""
) -> SoughtLock:
    return words_of(type_, WORD, frames, stack, Memory(memory).read)


def test_most_locks_have_the_word_that_their_waiters_wait_at() -> None:
    for type_ in ("", "Rust Mutex", "QMutex"):
        assert words(type_, {}) == SoughtLock(frozenset({WORD}))


def test_a_semaphore_is_free_while_its_word_is_higher() -> None:
    found = words("std::counting_semaphore wait", {})
    assert found == SoughtLock(frozenset({WORD}), is_free_high=True)


@pytest.mark.parametrize(("function", "offset"), [("write_contended", -4), ("read_contended", 0)])
def test_a_writer_of_a_rust_rwlock_waits_behind_the_state(function: str, offset: int) -> None:
    frames = (
        frame("std::sys::futex_wait", "futex.rs", 1),
        frame(f"std::sys::rwlock::futex::RwLock::{function}", "futex.rs", 2),
    )
    assert words("Rust RwLock", {}, frames).addresses == {WORD + offset}


def thread_data(keys: dict[int, int]) -> dict[int, int]:
    """Return the memory around the word of a waiter of parking_lot; keys by bytes before it."""
    memory = {WORD - 64 + 8 * number: 0 for number in range(10)}
    return memory | {WORD - distance: key for distance, key in keys.items()}


@pytest.mark.parametrize(
    ("key", "state", "frames", "lock"),
    [
        (LOCK, 0b11, OF_MUTEX, LOCK),
        (LOCK, 0b01, OF_MUTEX, None),  # no thread is parked
        (LOCK, 0b01, OF_RWLOCK, LOCK),
        (LOCK + 1, 0b10, OF_RWLOCK, LOCK),  # a writer waits for the readers
        (WORD - 32, 0b11, OF_MUTEX, None),  # the thread's own data
        (0x100, 0b11, OF_MUTEX, None),
    ],
)
def test_the_key_of_a_parked_thread_leads_to_its_lock(
    key: int, state: int, frames: tuple[Frame, ...], lock: int | None
) -> None:
    found = words(PARKING_LOT, {**thread_data({16: key}), LOCK: state}, frames)
    assert found.addresses == (frozenset() if lock is None else {lock})


def test_two_keys_near_a_parked_thread_are_no_answer() -> None:
    memory = {**thread_data({16: LOCK, 24: QUEUE}), LOCK: 3, QUEUE: 3}
    assert words(PARKING_LOT, memory, OF_MUTEX).addresses == frozenset()


def test_memory_of_a_parked_thread_that_cannot_be_read_is_no_answer() -> None:
    assert words(PARKING_LOT, {}, OF_MUTEX).addresses == frozenset()


def queue(*waiters: int) -> dict[int, int]:
    """Return waiters that each point to the next one, and the last to the first."""
    return dict(zip(waiters, [*waiters[1:], waiters[0]], strict=True))


def on_stack(*addresses: int) -> bytes:
    return struct.pack(f"={len(addresses)}Q", *addresses)


def test_the_mutex_of_abseil_on_the_stack_points_to_a_queue_with_the_waiter() -> None:
    own = WORD - 0x100
    memory = {STACK_OBJECT: QUEUE | 0x0C, **queue(QUEUE, own)}
    found = words(ABSEIL, memory, stack=on_stack(7, LOCK, STACK_OBJECT, STACK_OBJECT))
    assert (found.addresses, found.held_bits) == ({STACK_OBJECT}, 0x09)


@pytest.mark.parametrize(
    "memory",
    [
        {STACK_OBJECT: QUEUE | 0x08, **queue(QUEUE, WORD - 0x100)},  # nobody waits
        {STACK_OBJECT: QUEUE | 0x0C, **queue(QUEUE, QUEUE + 0x1000)},  # others wait
        {STACK_OBJECT: QUEUE | 0x0C, QUEUE: QUEUE + 0x1000},  # the queue cannot be read
        {STACK_OBJECT: QUEUE | 0x0C, QUEUE: 0},
        {},
    ],
)
def test_what_leads_to_no_queue_with_the_waiter_is_no_mutex_of_abseil(
    memory: dict[int, int],
) -> None:
    assert words(ABSEIL, memory, stack=on_stack(STACK_OBJECT)).addresses == frozenset()


def test_two_mutexes_of_abseil_are_no_answer() -> None:
    own = WORD - 0x100
    memory = {STACK_OBJECT: QUEUE | 0x0C, LOCK: QUEUE | 0x04, **queue(QUEUE, own)}
    found = words(ABSEIL, memory, stack=on_stack(LOCK, STACK_OBJECT))
    assert found.addresses == frozenset()


@pytest.mark.parametrize(
    ("context", "is_in_list", "state", "is_lock"),
    [
        (0, 0x101, 1, True),
        (1, 0x101, 6, True),  # a reader of an rw_mutex waits for a reader and a writer
        (1, 0x100, 6, False),  # it is woken
        (0, 0x101, 0, False),  # the lock is free
        (LOCK, 0x101, 1, False),
    ],
)
def test_the_node_of_a_waiter_of_tbb_has_its_lock(
    context: int, is_in_list: int, state: int, is_lock: bool
) -> None:
    memory = {WORD - 24: LOCK, WORD - 16: context, WORD - 8: is_in_list, LOCK: state}
    assert words(TBB, memory).addresses == ({LOCK} if is_lock else frozenset())


def test_a_node_of_tbb_that_cannot_be_read_is_no_answer() -> None:
    assert words(TBB, {WORD - 24: LOCK}).addresses == frozenset()


def held_state(readers: int, writer: int = 0, upgrade: int = 0) -> int:
    """Return the first word of a boost::shared_mutex."""
    return readers | writer << 32 | upgrade << 40


@pytest.mark.parametrize(
    ("method", "distance", "state", "is_lock"),
    [
        ("lock_shared", 88, held_state(0, writer=1), True),
        ("lock", 176, held_state(3), True),
        ("try_lock_until<x>", 176, held_state(3, upgrade=1), True),
        ("unlock_upgrade_and_lock", 264, held_state(1), True),
        ("lock", 176, held_state(0), False),  # nobody holds it
        ("lock", 176, held_state(1, writer=1), False),
        ("lock", 176, held_state(0, writer=2), False),
        ("state_data::can_lock", 176, held_state(1), False),
    ],
)
def test_the_method_tells_where_a_shared_mutex_of_boost_is(
    method: str, distance: int, state: int, is_lock: bool
) -> None:
    frames = (frame("boost::condition_variable::wait", "condition_variable.hpp", 1),
              frame(f"boost::shared_mutex::{method}", "shared_mutex.hpp", 1))  # fmt: skip
    mutex = WORD - distance
    memory = Memory({mutex: state})
    expected = {mutex, mutex + 4} if is_lock else set()
    assert shared_mutex_words(WORD, frames, memory.read).addresses == expected
    assert shared_mutex_words(WORD, frames[:1], memory.read).addresses == set()


SHARED_MUTEX_WORDS = 39  # of eight bytes, in a boost::shared_mutex
KIND_OF_LAST_MUTEX = 30


@pytest.mark.parametrize("distance", [88, 176, 264])
def test_a_held_state_and_four_mutexes_may_be_a_shared_mutex(distance: int) -> None:
    mutex = WORD - distance
    words = {mutex + 8 * number: 0 for number in range(SHARED_MUTEX_WORDS)}
    assert not may_be_in_shared_mutex(WORD, Memory(words).read)
    held = words | {mutex: 3}
    assert may_be_in_shared_mutex(WORD, Memory(held).read)
    assert not may_be_in_shared_mutex(WORD + 8, Memory(held).read)
    other_kind = held | {mutex + 8 * KIND_OF_LAST_MUTEX: 1}
    assert not may_be_in_shared_mutex(WORD, Memory(other_kind).read)


@pytest.mark.parametrize(
    ("type_", "may_be"),
    [("", True), ("std::atomic wait", True), ("OpenMP", True), ("Rust Mutex", False)],
)
def test_some_types_are_locks_in_some_programs(type_: str, may_be: bool) -> None:
    assert may_be_lock(type_) is may_be
