"""Recognises glibc's objects at a futex by all of their fields.

Layouts: glibc from 2.25 on, 64 bits (sysdeps/nptl/bits/thread-shared-types.h, struct_mutex.h,
struct_rwlock.h, nptl/pthreadP.h, internaltypes.h). An object is recognised only for certain. If one
field differs from its value during a wait, the memory is none of these objects.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from functools import partial

from msgspec import Struct

from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind

#: Bytes that are read before the word, and from the word on.
BEFORE = AFTER = 56

_TID_MASK, _WAITERS = 0x3FFFFFFF, 0x80000000  # FUTEX_TID_MASK, FUTEX_WAITERS
_ROBUST, _INHERIT, _PROTECT, _ELISION, _PSHARED = 16, 32, 64, 256 | 512, 128  # of __kind
_TYPES = range(4)  # timed (plain), recursive, error-checking, adaptive
_RECURSIVE = 1
# lock, count, owner, users, kind, then on x86-64 two shorts, elsewhere one int; a list: next,
# previous.
_MUTEX = struct.Struct("=IIIIi4xQQ")
# readers, writers, two futexes, two of padding, writer, shared, elision and padding, flags.
_RWLOCK = struct.Struct("=IIIIIIIIb7xQI4x")
_WRPHASE, _WRLOCKED, _RWAITING, _READER_SHIFT = 1, 2, 4, 3  # of __readers: pthread_rwlock_common.c
_FLAGS = (1 << _READER_SHIFT) - 1
_USED = 2  # PTHREAD_RWLOCK_FUTEX_USED
_FUTEXES = frozenset(range(4))  # values of the two futexes
# value, waiters, private, padding.
_SEM = struct.Struct("=IIi4x")
# in, current round, count, shared, out.
_BARRIER = struct.Struct("=IIIiI")
_ROUND_AT = 4
# wseq, g1 start, two refs, two sizes, original size, refs, two signals.
_COND = struct.Struct("=QQIIIIIIII")
_SIGNALS_AT = 40
# wseq, g1 start, two sizes, original size, refs, two signals, unused.
_LATER_COND = struct.Struct("=QQIIIIIIQ")
_LATER_SIGNALS_AT = 32
_LAST_WITH_REFS = 40  # glibc 2.40: the last version whose groups have references
FIRST_WITH_JOIN_STATES = 43  # from glibc 2.43 on, join_states.py knows the joins
_MAX_JOIN_STATE = 3  # THREAD_STATE_DETACHED
#: The upper half of the cookie that the library may write into locks (order/lock_cookie.c).
_COOKIE = 0x6C6F636B
#: More threads than any process has.
_MAX_WAITERS = 1 << 22
#: A child of a fork counts some users of its parent. Half of a pointer is a larger number.
_LEFT_BEHIND = 64


_Scan = Callable[[FutexWait, bytes, Collection[int]], "SyncObject | None"]


class SyncObject(Struct, frozen=True, gc=False):
    """The object that a thread waits for. A sample makes one for each thread that moves."""

    kind: Kind
    address: int
    owner: int = 0  # tid, perhaps of another process or of an ended thread; 0: none or unknown
    readers: int = 0  # number of readers, whose ids are unknown
    writes: bool = True  # rwlock: the waiter wants to write
    recursive: bool = False
    robust: bool = False
    shared: bool = False  # between processes
    parties: int = 0  # barrier: number of threads that it releases together
    awaits: int = 0  # join: tid
    waiters: int = 0  # semaphore: number of threads that wait at once


def recognise(
    wait: FutexWait,
    context: bytes,
    tids: Collection[int],
    glibc: int = 0,
    is_once: Callable[[int], bool] = lambda pc: False,
    may_wait_at: Callable[[int], bool] = lambda pc: True,
) -> SyncObject | None:
    """Return the object that a thread waits for; None if it is not certainly one of glibc's.

    Args:
        wait: the futex call.
        context: memory from BEFORE bytes before the word to AFTER bytes behind its begin.
        tids: the threads of the process, in its own pid namespace.
        glibc: 36 for version 2.36; 0: unknown.
        is_once: whether a call at a pc is one of pthread_once.
        may_wait_at: whether a call at a pc may be one of glibc.
    """
    if len(context) < BEFORE + AFTER:
        return None
    if wait.inherits:
        return _inheriting(wait, context, tids, may_wait_at(wait.pc))
    if not may_wait_at(wait.pc):
        return None
    if _may_be_once(wait, context) and is_once(wait.pc):
        return SyncObject(kind=Kind.ONCE, address=wait.address)
    return next(filter(None, (scan(wait, context, tids) for scan in _scans(glibc))), None)


def _scans(glibc: int) -> Iterator[_Scan]:
    """Yield the functions that recognise an object, for a version of glibc.

    From 2.41 on, one of the two words of a condition looks like a semaphore. The memory before it
    tells them apart.
    """
    if glibc > _LAST_WITH_REFS:
        yield _later_cond
    if glibc < FIRST_WITH_JOIN_STATES:
        yield partial(_join, glibc=glibc)
    yield from (_mutex, _sem, _barrier, _rwlock)
    if 0 < glibc <= _LAST_WITH_REFS:
        yield _cond


def word_of(context: bytes) -> int:
    """Return the word that a thread waits at; see recognise() for ``context``."""
    return int.from_bytes(context[BEFORE : BEFORE + 4], "little")


def _mutex(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    """The word of a robust mutex is the owner's tid. The word of others is 2: threads wait."""
    lock, count, owner, users, kind, next_, previous = _MUTEX.unpack_from(context, BEFORE)
    robust, shared = bool(kind & _ROBUST), bool(kind & _PSHARED)
    other_bits = kind & ~(_ROBUST | _PSHARED | _ELISION | 3)
    if other_bits or wait.private is shared or wait.address % 8 or not (wait.plain or wait.timed):
        return None
    if robust:
        owner = lock & _TID_MASK
        if wait.value != owner | _WAITERS:
            return None
    elif lock != 2 or wait.value != 2 or not _is_plain(users, shared, next_, previous, tids):
        return None
    if not 0 < owner <= _MAX_WAITERS:  # an owner outside the process may have ended
        return None
    recursive = kind & 3 == _RECURSIVE
    if count > 1 and not recursive:
        return None
    return SyncObject(
        kind=Kind.MUTEX,
        address=wait.address,
        owner=owner,
        recursive=recursive,
        robust=robust,
        shared=shared,
    )


def is_between_owners(former: SyncObject, wait: FutexWait, context: bytes) -> bool:
    """Return whether a former mutex may still be the same mutex: its constant fields are unchanged.

    Memory that was never a mutex may pass this check too.
    """
    if len(context) < BEFORE + AFTER or not (wait.plain or wait.timed or wait.inherits):
        return False
    lock, _, _, _, kind, next_, previous = _MUTEX.unpack_from(context, BEFORE)
    now = bool(kind & _ROBUST), kind & 3 == _RECURSIVE, not wait.private
    if now != (former.robust, former.recursive, former.shared):
        return False
    if kind & ~(_ROBUST | _INHERIT | _PSHARED | _ELISION | 3):
        return False
    listed = former.robust or wait.inherits
    return listed or (lock <= 2 and wait.value == 2 and _is_unlisted(next_, previous))


def _is_unlisted(next_: int, previous: int) -> bool:
    return not previous and (not next_ or next_ >> 32 == _COOKIE)


def _is_plain(users: int, shared: bool, next_: int, previous: int, tids: Collection[int]) -> bool:
    """Users are threads, perhaps of another process; only robust mutexes are in a list. Locks of C
    files and of Rust begin like mutexes, but have other values there.
    """
    max_count = _MAX_WAITERS if shared else len(tids) + _LEFT_BEHIND
    return 0 < users <= max_count and _is_unlisted(next_, previous)


def _inheriting(
    wait: FutexWait, context: bytes, tids: Collection[int], is_glibc: bool
) -> SyncObject | None:
    """The kernel knows the owner: it wrote the tid into the word."""
    lock, _, _, _, kind, _, _ = _MUTEX.unpack_from(context, BEFORE)
    owner = lock & _TID_MASK
    if owner not in tids:
        return None
    other_bits = kind & ~(_ROBUST | _PSHARED | _ELISION | 3)
    if other_bits != _INHERIT or not is_glibc:
        return SyncObject(kind=Kind.FUTEX, address=wait.address, owner=owner)
    return SyncObject(
        kind=Kind.MUTEX, address=wait.address, owner=owner, recursive=kind & 3 == _RECURSIVE,
        robust=bool(kind & _ROBUST), shared=not wait.private,
    )  # fmt: skip


def _may_be_once(wait: FutexWait, context: bytes) -> bool:
    """While a routine runs, its control is 1 plus 4 times the number of earlier forks."""
    value = wait.value
    same = value == word_of(context)
    return same and value & 3 == 1 and wait.plain and wait.private and not wait.timed


def _join(wait: FutexWait, context: bytes, tids: Collection[int], glibc: int) -> SyncObject | None:
    """The word is the tid of the joined thread, in its own struct pthread. The kernel clears the
    word at the end of the thread, and wakes as if the word were shared.

    In an unknown glibc a very small number may be the state of a thread.
    """
    tid = word_of(context)
    if wait.private or wait.plain or wait.value != tid or tid not in tids:
        return None
    if not glibc and tid <= _MAX_JOIN_STATE:
        return None
    return SyncObject(kind=Kind.JOIN, address=wait.address, awaits=tid)


def _sem(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    value, waiters, private = _SEM.unpack_from(context, BEFORE)
    if wait.value or value or not waiters or wait.plain or wait.address % 8:
        return None
    if waiters > _MAX_WAITERS or private != (0 if wait.private else _PSHARED):
        return None
    return SyncObject(kind=Kind.SEM, address=wait.address, shared=not wait.private, waiters=waiters)


def _barrier(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    """``in`` counts the arrived threads. The round is their number at the end of the last round.
    The others wait, and at least one thread is missing.
    """
    came, turn, count, shared, out = _BARRIER.unpack_from(context, BEFORE - _ROUND_AT)
    waiting = (came - turn) & 0xFFFFFFFF
    if not wait.plain or wait.value != turn or wait.address % 8 != _ROUND_AT:
        return None
    if not 0 < waiting < count or count > _MAX_WAITERS or shared not in (0, _PSHARED):
        return None
    if turn % count or out > turn or wait.private is bool(shared):
        return None
    address = wait.address - _ROUND_AT
    return SyncObject(kind=Kind.BARRIER, address=address, parties=count, shared=bool(shared))


def _rwlock(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    if wait.plain:
        return None
    for word_offset, is_one_of in _RWLOCK_WORDS.items():
        rwlock = _rwlock_at(wait, context, word_offset, tids) if is_one_of(wait) else None
        if rwlock is not None:
            return rwlock
    return None


#: By offset of the word: the waits that are made there. At 12 writers wait for the turn of another
#: writer. At 8 readers wait for the end of a write phase, or a writer for the readers. At 0 readers
#: let a writer go first.
_RWLOCK_WORDS: dict[int, Callable[[FutexWait], bool]] = {
    12: lambda wait: wait.address % 8 == 4 and wait.value == _USED | 1,
    8: lambda wait: wait.address % 8 == 0 and wait.value in (_USED, _USED | 1),
    0: lambda wait: wait.address % 8 == 0 and bool(wait.value & _RWAITING),
}


def _rwlock_at(
    wait: FutexWait, context: bytes, word_offset: int, tids: Collection[int]
) -> SyncObject | None:
    readers, writers, phase_word, writers_word, pad3, pad4, writer, shared, elision, mark, flags = (
        _RWLOCK.unpack_from(context, BEFORE - word_offset)
    )
    if pad3 or pad4 or elision or flags > 2 or shared not in (0, 1) or wait.private is bool(shared):
        return None
    if mark and mark >> 32 != _COOKIE:
        return None
    count, phase = readers >> _READER_SHIFT, readers & (_WRPHASE | _WRLOCKED)
    address = wait.address - word_offset
    has_ended = (
        0 < writer <= _MAX_WAITERS
        and writers <= _MAX_WAITERS
        and {phase_word, writers_word} <= _FUTEXES
    )
    if phase == _WRPHASE | _WRLOCKED and word_offset and (writer in tids or shared or has_ended):
        owner = writer if writer in tids or not shared else 0
        writes = word_offset == 12 or wait.value == _USED
        return SyncObject(
            kind=Kind.RWLOCK, address=address, owner=owner, writes=writes, shared=bool(shared)
        )
    # A writer waits for the readers; others wait for the writer or behind it.
    # Since a reader went to sleep at the number of readers, some of them may have left.
    is_word = word_offset or (
        readers & _FLAGS == wait.value & _FLAGS and count <= wait.value >> _READER_SHIFT
    )
    if phase == _WRLOCKED and 0 < count <= _MAX_WAITERS and is_word:
        return SyncObject(
            kind=Kind.RWLOCK,
            address=address,
            readers=count,
            writes=word_offset != 0,
            shared=bool(shared),
        )
    return None


def _cond(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    """Waiters enter one of two groups (G2 in glibc's comments) while the other (G1) is signalled.
    Bit 0 of the sequence and of the start of G1 says which one. The size of the first group is
    negative by the number of waiters that gave up in it.
    """
    word = 1 if wait.address % 8 else 0
    word_offset = _SIGNALS_AT + 4 * word
    sequence, start, refs0, refs1, size0, size1, original, refs, _, _ = _COND.unpack_from(
        context, BEFORE - word_offset
    )
    waiters, began_with = refs >> 3, original >> 2  # the bits below are flags and a lock
    if wait.plain or wait.value or not 0 < waiters <= _MAX_WAITERS or (sequence ^ start) & 1:
        return None
    # Bit 0 of __wrefs: shared between processes. Bits of references: woken waiters that have not
    # left.
    if wait.private is bool(refs & 1) or refs0 >> 1 > waiters or refs1 >> 1 > waiters:
        return None
    coming, leaving = (size1, size0) if sequence & 1 else (size0, size1)
    came = (sequence >> 1) - (start >> 1) - began_with
    if came < 0 or (came + coming) & 0xFFFFFFFF > waiters or leaving > began_with:
        return None
    return SyncObject(kind=Kind.COND, address=wait.address - word_offset, shared=bool(refs & 1))


def _later_cond(wait: FutexWait, context: bytes, tids: Collection[int]) -> SyncObject | None:
    """The same in glibc 2.41 and later, without references and flags of groups.

    The sequence alone says which group is which. A word of signals counts on from the start of G1.
    So the word is above that start only while a signal is there to take.
    """
    word_offset = _LATER_SIGNALS_AT + (4 if wait.address % 8 else 0)
    sequence, start, size0, size1, original, refs, _, _, unused = _LATER_COND.unpack_from(
        context, BEFORE - word_offset
    )
    waiters, began_with = refs >> 3, original >> 2
    if wait.plain or unused or not 0 < waiters <= _MAX_WAITERS or wait.private is bool(refs & 1):
        return None
    coming, leaving = (size1, size0) if sequence & 1 else (size0, size1)
    came = (sequence >> 1) - start - began_with
    if came < 0 or (came + coming) & 0xFFFFFFFF > waiters or leaving > began_with:
        return None
    # The word may have a new start since the thread fell asleep, without a signal for it.
    if any(
        0 < (signals - start) & 0xFFFFFFFF < 1 << 31 for signals in (word_of(context), wait.value)
    ):
        return None
    return SyncObject(kind=Kind.COND, address=wait.address - word_offset, shared=bool(refs & 1))
