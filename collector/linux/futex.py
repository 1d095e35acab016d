"""Parses waits from the arguments of futex calls (futex(2), include/uapi/linux/futex.h)."""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

from locktop.collector.linux import process_memory, syscalls
from locktop.collector.linux.syscalls import SystemCall

_PRIVATE = 128
_CLOCK_REALTIME = 256
_WAIT, _LOCK_PI, _WAIT_BITSET, _WAIT_REQUEUE_PI, _LOCK_PI2 = 0, 6, 9, 11, 13
_WAITS = frozenset({_WAIT, _LOCK_PI, _WAIT_BITSET, _WAIT_REQUEUE_PI, _LOCK_PI2})
_WAITV = struct.Struct("=QQII")  # struct futex_waitv: value, address, flags, reserved
_WAITV_PRIVATE = 128


class FutexWait(NamedTuple):
    """The futex call in which a thread sleeps."""

    address: int
    value: int  # the expected value of the word, unsigned 32 bits; 0 if the call has none
    private: bool  # no other process uses the word
    plain: bool  # FUTEX_WAIT: no bit set, and a relative time limit
    inherits: bool  # FUTEX_LOCK_PI: the kernel keeps the owner in the word
    timed: bool
    pc: int = 0  # address of the instruction after the call
    is_first_of_many: bool = False  # a change of another word ends the wait, too


def parse_wait(pid: int, call: SystemCall) -> FutexWait | None:
    """Return the wait; None if the thread is in another call, or wakes other threads."""
    name = syscalls.name(call.number)
    if name == "futex":
        return _classic(call)
    if name == "futex_waitv":
        return _first_of_vector(pid, call)
    return None


@functools.lru_cache(maxsize=4096)  # as syscalls.parse
def _classic(call: SystemCall) -> FutexWait | None:
    address, operation, value, timeout = call.arguments[:4]
    command = operation & ~(_PRIVATE | _CLOCK_REALTIME) & 0xFFFFFFFF
    if command not in _WAITS:
        return None
    inherits = command in (_LOCK_PI, _LOCK_PI2)
    return FutexWait(
        address=address,
        value=0 if inherits else value & 0xFFFFFFFF,
        private=bool(operation & _PRIVATE),
        plain=command == _WAIT,
        inherits=inherits,
        timed=timeout != 0,
        pc=call.pc,
    )


def _first_of_vector(pid: int, call: SystemCall) -> FutexWait | None:
    """Return the wait for the first of several words. Any of the words may end the wait."""
    waiters, count, _, timeout = call.arguments[:4]
    raw = process_memory.read(pid, waiters, _WAITV.size) if count else b""
    if len(raw) < _WAITV.size:
        return None
    value, address, flags, _ = _WAITV.unpack(raw)
    private = bool(flags & _WAITV_PRIVATE)
    return FutexWait(
        address=address,
        value=value & 0xFFFFFFFF,
        private=private,
        plain=False,
        inherits=False,
        timed=timeout != 0,
        pc=call.pc,
        is_first_of_many=count > 1,
    )
