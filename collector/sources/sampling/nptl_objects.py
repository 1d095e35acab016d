"""What lies at a futex that threads wait for: glibc's objects, known again by all that is in them.

Layouts: glibc from 2.25 on, 64 bits (sysdeps/nptl/bits/thread-shared-types.h, struct_mutex.h,
struct_rwlock.h, nptl/pthreadP.h, internaltypes.h). Only what can be told is told: where one field
is not as it would be while a thread waits there, it is none of these.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import NamedTuple

from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind

#: Bytes before and after the word that are wanted.
BEFORE = AFTER = 56

_TID_MASK, _WAITERS = 0x3FFFFFFF, 0x80000000  # FUTEX_TID_MASK, FUTEX_WAITERS
_ROBUST, _INHERIT, _PROTECT, _ELISION, _PSHARED = 16, 32, 64, 256 | 512, 128  # of __kind
_TYPES = range(4)  # timed (plain), recursive, error-checking, adaptive
_RECURSIVE = 1
# lock, count, owner, users, kind, on x86-64 two shorts, elsewhere one int; a list: next, previous.
_MUTEX = struct.Struct("=IIIIi4xQQ")
# readers, writers, two futexes, two of padding, writer, shared, elision and padding, flags.
_RWLOCK = struct.Struct("=IIIIIIIIb7xQI4x")
_WRPHASE, _WRLOCKED, _RWAITING, _READER_SHIFT = 1, 2, 4, 3  # of __readers: pthread_rwlock_common.c
_USED = 2  # PTHREAD_RWLOCK_FUTEX_USED
# value, waiters, private, padding.
_SEM = struct.Struct("=IIi4x")
# in, current round, count, shared, out.
_BARRIER = struct.Struct("=IIIiI")
_ROUND_AT = 4
# wseq, g1 start, two refs, two sizes, original size, refs, two signals.
_COND = struct.Struct("=QQIIIIIIII")
_SIGNALS_AT = 40
_LAST_OF_THAT_LAYOUT = 40  # glibc 2.40: later ones have no refs
_OUR_MARK = 0x6C6F636B  # native/src/order/lock_cookie.c: the upper half of what we may write into some
#: More threads than any process has.
_MAX_WAITERS = 1 << 22
#: A child counts some users that its fork left behind; half of a pointer is more.
_LEFT_BEHIND = 64


class Object(NamedTuple):  # some for each thread that moves, in each sample
    """What threads wait for."""

    kind: Kind
    address: int
    owner: int = 0  # tid, 0 nobody or not known; perhaps of another process, or one that ended
    readers: int = 0  # how many have it for reading; who they are it does not say
    writes: bool = True  # rwlock: the wait is one to write
    recursive: bool = False
    robust: bool = False
    shared: bool = False  # between processes
    parties: int = 0  # barrier: how many it lets go at once
    awaits: int = 0  # join: tid


def told(
    wait: FutexWait,
    context: bytes,
    tids: Collection[int],
    glibc: int = 0,
    is_once: Callable[[int], bool] = lambda pc: False,
    waits_at: Callable[[int], bool] = lambda pc: True,
) -> Object | None:
    """Return the object that a thread waits for; None where it is none of glibc's, or may be none.

    ``around``: memory from BEFORE bytes before the word to AFTER bytes behind it; ``tids``: of the
    process, as it knows them; ``glibc``: 36 of version 2.36, 0 not known; ``is_once``:
    whether it is pthread_once that makes a call, by where it is made; ``waits_at``: whether it may
    be glibc that does."""
    if len(context) < BEFORE + AFTER:
        return None
    if wait.inherits:
        return _inheriting(wait, context, tids, waits_at(wait.pc))
    if not waits_at(wait.pc):
        return None
    if _may_be_once(wait, context) and is_once(wait.pc):
        return Object(Kind.ONCE, wait.address)
    found = next(filter(None, (scan(wait, context, tids) for scan in _SCANS)), None)
    if found is None and 0 < glibc <= _LAST_OF_THAT_LAYOUT:
        return _cond(wait, context)
    return found


def _word(context: bytes) -> int:
    return int.from_bytes(context[BEFORE : BEFORE + 4], "little")


def _mutex(wait: FutexWait, context: bytes, tids: Collection[int]) -> Object | None:
    """Of a robust one the word is the owner's tid, of others 2: somebody waits."""
    lock, count, owner, users, kind, next_, previous = _MUTEX.unpack_from(context, BEFORE)
    robust, shared = bool(kind & _ROBUST), bool(kind & _PSHARED)
    known = kind & ~(_ROBUST | _PSHARED | _ELISION | 3)
    if known or wait.private is shared or wait.address % 8 or not (wait.plain or wait.timed):
        return None
    if robust:
        owner = lock & _TID_MASK
        if wait.value != owner | _WAITERS:
            return None
    elif lock != 2 or wait.value != 2 or not _is_plain(users, shared, next_, previous, tids):
        return None
    if not 0 < owner <= _MAX_WAITERS:  # one that is none of the process's may have ended
        return None
    recursive = kind & 3 == _RECURSIVE
    if count > 1 and not recursive:
        return None
    return Object(
        Kind.MUTEX, wait.address, owner, recursive=recursive, robust=robust, shared=shared
    )


def is_between_owners(known: Object, wait: FutexWait, context: bytes) -> bool:
    """Tell whether what was a mutex may be the same one still: all that stays in it is as it was.
    What has never been one may look so, too."""
    if len(context) < BEFORE + AFTER or not (wait.plain or wait.timed or wait.inherits):
        return False
    lock, _, _, _, kind, next_, previous = _MUTEX.unpack_from(context, BEFORE)
    now = bool(kind & _ROBUST), kind & 3 == _RECURSIVE, not wait.private
    if now != (known.robust, known.recursive, known.shared):
        return False
    if kind & ~(_ROBUST | _INHERIT | _PSHARED | _ELISION | 3):
        return False
    listed = known.robust or wait.inherits
    return listed or (lock <= 2 and wait.value == 2 and _is_unlisted(next_, previous))


def _is_unlisted(next_: int, previous: int) -> bool:
    return not previous and (not next_ or next_ >> 32 == _OUR_MARK)


def _is_plain(users: int, shared: bool, next_: int, previous: int, tids: Collection[int]) -> bool:
    """Users are threads, perhaps of another process; only robust mutexes are in a list. Locks of C
    files and of Rust begin like mutexes, and have something else there."""
    most = _MAX_WAITERS if shared else len(tids) + _LEFT_BEHIND
    return 0 < users <= most and _is_unlisted(next_, previous)


def _inheriting(
    wait: FutexWait, context: bytes, tids: Collection[int], is_glibc: bool
) -> Object | None:
    """The kernel knows of the owner: it wrote the tid into the word."""
    lock, _, _, _, kind, _, _ = _MUTEX.unpack_from(context, BEFORE)
    owner = lock & _TID_MASK
    if owner not in tids:
        return None
    known = kind & ~(_ROBUST | _PSHARED | _ELISION | 3)
    if known != _INHERIT or not is_glibc:
        return Object(Kind.FUTEX, wait.address, owner)
    return Object(
        Kind.MUTEX, wait.address, owner, recursive=kind & 3 == _RECURSIVE,
        robust=bool(kind & _ROBUST), shared=not wait.private,
    )  # fmt: skip


def _may_be_once(wait: FutexWait, context: bytes) -> bool:
    """While a routine runs its control is 1 and how many forks there were before, times 4."""
    value = wait.value
    same = value == _word(context)
    return same and value & 3 == 1 and wait.plain and wait.private and not wait.timed


def _join(wait: FutexWait, context: bytes, tids: Collection[int]) -> Object | None:
    """The word is the tid of the thread that is joined, in its own struct pthread; the kernel
    clears it at its end, and wakes as if it were shared."""
    tid = _word(context)
    if wait.private or wait.plain or wait.value != tid or tid not in tids:
        return None
    return Object(Kind.JOIN, wait.address, awaits=tid)


def _sem(wait: FutexWait, context: bytes, tids: Collection[int]) -> Object | None:
    value, waiters, private = _SEM.unpack_from(context, BEFORE)
    if wait.value or value or not waiters or wait.plain or wait.address % 8:
        return None
    if waiters > _MAX_WAITERS or private != (0 if wait.private else _PSHARED):
        return None
    return Object(Kind.SEM, wait.address, shared=not wait.private)


def _barrier(wait: FutexWait, context: bytes, tids: Collection[int]) -> Object | None:
    """``in`` counts those that came, the round is how many had come when the last one was over: the
    others wait, and one is missing at least."""
    came, turn, count, shared, out = _BARRIER.unpack_from(context, BEFORE - _ROUND_AT)
    waiting = (came - turn) & 0xFFFFFFFF
    if not wait.plain or wait.value != turn or wait.address % 8 != _ROUND_AT:
        return None
    if not 0 < waiting < count or count > _MAX_WAITERS or shared not in (0, _PSHARED):
        return None
    if turn % count or out > turn or wait.private is bool(shared):
        return None
    address = wait.address - _ROUND_AT
    return Object(Kind.BARRIER, address, parties=count, shared=bool(shared))


def _rwlock(wait: FutexWait, context: bytes, tids: Collection[int]) -> Object | None:
    if wait.plain:
        return None
    for at, is_one_of in _RWLOCK_WORDS.items():
        found = _rwlock_at(wait, context, at, tids) if is_one_of(wait) else None
        if found is not None:
            return found
    return None


#: Where the words lie, and which waits are made there: of writers for another one's turn; of
#: readers for the end of a write phase, of a writer for the readers; of readers that let a writer
#: go first.
_RWLOCK_WORDS: dict[int, Callable[[FutexWait], bool]] = {
    12: lambda wait: wait.address % 8 == 4 and wait.value == _USED | 1,
    8: lambda wait: wait.address % 8 == 0 and wait.value in (_USED, _USED | 1),
    0: lambda wait: wait.address % 8 == 0 and bool(wait.value & _RWAITING),
}


def _rwlock_at(wait: FutexWait, context: bytes, at: int, tids: Collection[int]) -> Object | None:
    readers, _, _, _, pad3, pad4, writer, shared, elision, mark, flags = _RWLOCK.unpack_from(
        context, BEFORE - at
    )
    if pad3 or pad4 or elision or flags > 2 or shared not in (0, 1) or wait.private is bool(shared):
        return None
    if mark and mark >> 32 != _OUR_MARK:
        return None
    count, phase = readers >> _READER_SHIFT, readers & (_WRPHASE | _WRLOCKED)
    address = wait.address - at
    if phase == _WRPHASE | _WRLOCKED and at and (writer in tids or shared):
        owner = writer if writer in tids else 0
        writes = at == 12 or wait.value == _USED
        return Object(Kind.RWLOCK, address, owner, writes=writes, shared=bool(shared))
    # A writer waits for the readers; others for the writer or behind it.
    if phase == _WRLOCKED and 0 < count <= _MAX_WAITERS and (at or readers == wait.value):
        return Object(Kind.RWLOCK, address, readers=count, writes=at != 0, shared=bool(shared))
    return None


def _cond(wait: FutexWait, context: bytes) -> Object | None:
    """Waiters come into one of two groups (G2 in glibc's comments) while the other one (G1) is
    signalled; bit 0 of the sequence and of where G1 starts says which. The size of the first is as
    many below 0 as gave up in it."""
    word = 1 if wait.address % 8 else 0
    at = _SIGNALS_AT + 4 * word
    sequence, start, refs0, refs1, size0, size1, original, refs, _, _ = _COND.unpack_from(
        context, BEFORE - at
    )
    waiters, began_with = refs >> 3, original >> 2  # the bits below are flags and a lock
    if wait.plain or wait.value or not 0 < waiters <= _MAX_WAITERS or (sequence ^ start) & 1:
        return None
    # Bit 0 of __wrefs: shared between processes; bits of references: who was woken and is not out.
    if wait.private is bool(refs & 1) or refs0 >> 1 > waiters or refs1 >> 1 > waiters:
        return None
    coming, leaving = (size1, size0) if sequence & 1 else (size0, size1)
    came = (sequence >> 1) - (start >> 1) - began_with
    if came < 0 or (came + coming) & 0xFFFFFFFF > waiters or leaving > began_with:
        return None
    return Object(Kind.COND, wait.address - at, shared=bool(refs & 1))


_SCANS = (_join, _mutex, _sem, _barrier, _rwlock)
