"""The joined thread in glibc 2.43 and later, where a join waits for a state and not for a tid.

The word is ``joinstate`` of the joined thread's struct pthread (nptl/descr.h and
pthread_join_common.c). On x86-64 this struct has its own address twice at its begin
(sysdeps/x86_64/nptl/tls.h). Elsewhere nothing marks the begin, and the join stays a futex wait.
"""

from __future__ import annotations

import struct
from collections.abc import Collection

from locktop.collector.linux import process_memory
from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind
from locktop.collector.sources.sampling.nptl_objects import (
    FIRST_WITH_JOIN_STATES,
    SyncObject,
    word_of,
)

_WAITED_STATES = frozenset({1, 2})  # THREAD_STATE_EXITING, THREAD_STATE_JOINABLE
_ALIGNMENT = 64  # TCB_ALIGNMENT
#: struct pthread of 2.43 has 0x900 bytes with ``joinstate`` at 0x628.
_MAX_OFFSET = 0x900
_TID_AT = 0x2D0
_HEADER = struct.Struct(f"=Q8xQ{_TID_AT - 24}xI")  # tcb, self; tid


def find_join(
    pid: int, wait: FutexWait, context: bytes, tids: Collection[int], glibc: int
) -> SyncObject | None:
    """Return the join that a thread waits in, None if the wait is certainly none.

    Args:
        pid: the process.
        wait: a futex call of glibc that is no other object.
        context: see nptl_objects.recognise().
        tids: the threads of the process, in its own pid namespace.
        glibc: 43 for version 2.43.
    """
    if glibc < FIRST_WITH_JOIN_STATES or wait.private or wait.plain:
        return None
    if not {wait.value, word_of(context)} <= _WAITED_STATES:
        return None
    begin = wait.address - _MAX_OFFSET
    memory = process_memory.read(pid, begin, _MAX_OFFSET)
    last = wait.address - wait.address % _ALIGNMENT
    for address in range(last, begin, -_ALIGNMENT):
        if address - begin + _HEADER.size > len(memory):
            continue
        header, itself, tid = _HEADER.unpack_from(memory, address - begin)
        if header == itself == address and tid in tids:
            return SyncObject(kind=Kind.JOIN, address=wait.address, awaits=tid)
    return None
