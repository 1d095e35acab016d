"""The words of a lock in memory, for waits at futexes whose lock names no holder.

Most locks have the word that their waiters wait at. In some a thread waits elsewhere:

- A writer that waits for a Rust RwLock waits at ``writer_notify``, behind ``state``
  (library/std/src/sys/sync/rwlock/futex.rs).
- A waiter of parking_lot waits at a word of its own. ``ThreadData::key`` before it is the address
  of the lock, plus 1 if a writer waits for the readers of a RwLock (parking_lot_core's
  src/parking_lot.rs, parking_lot's src/raw_rwlock.rs).
- A waiter of Abseil waits at a word of its own. While threads wait, the word of the mutex is the
  address of a waiter's PerThreadSynch with flags in the low byte (absl/synchronization/mutex.cc).
- A waiter of a boost::shared_mutex waits at one of its conditions, behind its state
  (boost/thread/pthread/shared_mutex.hpp).
- A waiter of TBB waits at the semaphore of its ``sleep_node``. The ``address_context`` before it
  has the address of the lock and, of an rw_mutex, 1 for a reader (oneTBB's concurrent_monitor.h).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

from locktop.collector.model import Frame
from locktop.collector.symbols.unwind.first_use import SoughtLock

#: Types of idle.rules.
RUST_MUTEX, RUST_RWLOCK = "Rust Mutex", "Rust RwLock"
_PARKING_LOT, _ABSEIL, _TBB = "parking_lot waiter", "absl::Mutex waiter", "TBB mutex waiter"
_SEMAPHORE = "std::counting_semaphore wait"
_EITHER = frozenset({"", _SEMAPHORE, "std::atomic wait", "OpenMP"})
_WRITER = "write_contended"
_WORD = struct.Struct("=Q")
_LOW = 1 << 16  # no object lies in the first pages
#: Bytes of ThreadData before and behind the word of a waiter of parking_lot.
_KEY_BEFORE, _KEY_BEHIND = 64, 16
_MUTEX_PARKED, _RWLOCK_PARKED = 0b10, 0b11
_RAW_RWLOCK = "raw_rwlock"
#: Flags in the word of an absl::Mutex, and the alignment of what it points to.
_ABSEIL_WAIT, _ABSEIL_FLAGS = 0x04, 0xFF
_IDENTITY_SIZE = 512  # at most, of a ThreadIdentity, which begins with a PerThreadSynch
_MAX_QUEUE = 256
#: kMuWriter and kMuReader
_ABSEIL_HELD = 0x09
#: Bytes from an address_context to the semaphore behind it. The context has the address of the
#: lock, and 0 for a writer or 1 for a reader. The last byte tells whether the node is in a list.
_TBB_BEFORE = 24
_TBB_NODE = struct.Struct("=QQ?")
#: The state of a boost::shared_mutex, where the object begins: the number of readers, and flags, of
#: which the first tells of a writer.
_BOOST_STATE = struct.Struct("=IBBB")
_BOOST_WRITER = 4
#: Bytes from there to the condition at which a method waits, by the method.
_BOOST_CONDITIONS = {
    **dict.fromkeys(("lock_shared", "timed_lock_shared", "try_lock_shared_until"), 88),
    **dict.fromkeys(("lock_upgrade", "timed_lock_upgrade", "try_lock_upgrade_until"), 88),
    **dict.fromkeys(("lock", "timed_lock", "try_lock_until"), 176),
    "unlock_upgrade_and_lock": 264,
}
#: Bytes from there to the pthread_mutex_t of the object and of its conditions.
_BOOST_MUTEXES = (8, 48, 136, 224)
#: Of a pthread_mutex_t: lock, count, kind, and a list: next, previous. Threads wait for lock 2.
_MUTEX = struct.Struct("=II8xi4xQQ")
_MUTEX_WAITED = 2
_BOOST_METHOD = re.compile(r"boost::shared_mutex::(\w+)")
_MAX_READERS, _MAX_METHOD_FRAMES = 1 << 16, 8

#: Reads up to so many bytes of the process at an address.
Read = Callable[[int, int], bytes]


def may_be_lock(type_: str) -> bool:
    """Return whether futexes of a type are locks in some programs, and idle waits in others."""
    return type_ in _EITHER


def words_of(
    type_: str, address: int, frames: Sequence[Frame], stack: bytes, read: Read
) -> SoughtLock:
    """Return the words of a lock; those without an address are not known.

    Args:
        type_: the type of the futex (Lock.type); "" for none.
        address: where a thread waits.
        frames: the stack of its wait.
        stack: the innermost bytes of its stack.
        read: reads memory.
    """
    if type_ == _PARKING_LOT:
        return SoughtLock(_parking_lot_words(address, frames, read))
    if type_ == _ABSEIL:
        return SoughtLock(_abseil_words(address, stack, read), held_bits=_ABSEIL_HELD)
    if type_ == _TBB:
        return SoughtLock(_tbb_words(address, read))
    if type_ == RUST_RWLOCK and any(_WRITER in frame.function for frame in frames[:4]):
        return SoughtLock(frozenset({address - 4}))
    return SoughtLock(frozenset({address}), is_free_high=type_ == _SEMAPHORE)


def shared_mutex_words(address: int, frames: Sequence[Frame], read: Read) -> SoughtLock:
    """Return the words of the boost::shared_mutex that a condition belongs to; none of another.

    Args:
        address: the condition.
        frames: the stack of a wait for it.
        read: reads memory.
    """
    methods = (_BOOST_METHOD.match(frame.function) for frame in frames[:_MAX_METHOD_FRAMES])
    method = next(filter(None, methods), None)
    distance = _BOOST_CONDITIONS.get(method[1]) if method is not None else None
    if distance is None or not _is_held_state(read(address - distance, _BOOST_STATE.size)):
        return SoughtLock(frozenset())
    mutex = address - distance
    return SoughtLock(frozenset({mutex, mutex + _BOOST_WRITER}))


def may_be_in_shared_mutex(address: int, read: Read) -> bool:
    """Return whether a condition seems to belong to a boost::shared_mutex that is held.

    Memory alone does not prove that. The names of functions tell.
    """
    return any(
        _is_held_state(read(address - distance, _BOOST_STATE.size))
        and all(
            _may_be_plain_mutex(read(address - distance + offset, _MUTEX.size))
            for offset in _BOOST_MUTEXES
        )
        for distance in set(_BOOST_CONDITIONS.values())
    )


def _may_be_plain_mutex(data: bytes) -> bool:
    """Return whether memory may be a pthread_mutex_t without attributes."""
    if len(data) < _MUTEX.size:
        return False
    lock, count, kind, following, previous = _MUTEX.unpack(data)
    return lock <= _MUTEX_WAITED and not (count or kind or following or previous)


def _is_held_state(data: bytes) -> bool:
    """Return whether memory is the state of a boost::shared_mutex that is held."""
    if len(data) < _BOOST_STATE.size:
        return False
    readers, writer, upgrade, blocked = _BOOST_STATE.unpack(data)
    if max(writer, upgrade, blocked) > 1:
        return False
    return not readers if writer else 0 < readers < _MAX_READERS


def _words(data: bytes) -> list[int]:
    usable = len(data) - len(data) % _WORD.size
    return [word for (word,) in _WORD.iter_unpack(data[:usable])]


def _parking_lot_words(address: int, frames: Sequence[Frame], read: Read) -> frozenset[int]:
    """Return the only word near the waiter's that leads to a lock with parked threads."""
    begin = (address - _KEY_BEFORE) // _WORD.size * _WORD.size
    size = _KEY_BEFORE + _KEY_BEHIND
    is_rwlock = any(_RAW_RWLOCK in frame.function for frame in frames)
    parked = _RWLOCK_PARKED if is_rwlock else _MUTEX_PARKED
    keys = set()
    for key in _words(read(begin, size)):
        if key < _LOW or begin <= key < begin + size:
            continue
        lock = key & ~1 if is_rwlock else key
        state = read(lock, 1)
        if state and state[0] & parked:
            keys.add(lock)
    return frozenset(keys) if len(keys) == 1 else frozenset()


def _abseil_words(address: int, stack: bytes, read: Read) -> frozenset[int]:
    """Return the only address on the stack whose word points to a queue with the waiter."""
    mutexes = set()
    for candidate in {word for word in _words(stack) if word >= _LOW and not word % _WORD.size}:
        word = read(candidate, _WORD.size)
        if len(word) < _WORD.size or not word[0] & _ABSEIL_WAIT:
            continue
        if _is_in_queue(address, _WORD.unpack(word)[0] & ~_ABSEIL_FLAGS, read):
            mutexes.add(candidate)
    return frozenset(mutexes) if len(mutexes) == 1 else frozenset()


def _tbb_words(address: int, read: Read) -> frozenset[int]:
    """Return the word of a lock that is held, by the node of a waiter in a list."""
    node = read(address - _TBB_BEFORE, _TBB_NODE.size)
    if len(node) < _TBB_NODE.size:
        return frozenset()
    lock, context, is_in_list = _TBB_NODE.unpack(node)
    is_held = lock >= _LOW and any(read(lock, 1))
    return frozenset({lock}) if is_held and context <= 1 and is_in_list else frozenset()


def _is_in_queue(address: int, last: int, read: Read) -> bool:
    """Return whether a thread that waits at an address is in a queue of waiters.

    Each waiter is a PerThreadSynch, which begins with the address of the next one. The word of its
    thread lies behind it.
    """
    waiter = last
    for _ in range(_MAX_QUEUE):
        if waiter < _LOW:
            return False
        if 0 <= address - waiter < _IDENTITY_SIZE:
            return True
        following = read(waiter, _WORD.size)
        if len(following) < _WORD.size:
            return False
        waiter = _WORD.unpack(following)[0]
        if waiter == last:
            return False
    return False
