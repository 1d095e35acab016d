"""A join of glibc 2.43 is known only if the word lies in the struct pthread of a living thread."""

from __future__ import annotations

import ctypes
import os
import struct

import pytest

from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind
from locktop.collector.sources.sampling import join_states, nptl_objects
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, SyncObject

TIDS = {2, 100, 101}
_STATE_AT, _TID_AT, _SIZE = 0x628, 0x2D0, 0x900
_JOINABLE = 2


class PthreadMemory:
    """The memory of a struct pthread, with zeros but for what identifies it."""

    def __init__(self, tid: int, state: int = _JOINABLE) -> None:
        self._buffer = ctypes.create_string_buffer(3 * _SIZE)
        start = ctypes.addressof(self._buffer)
        self.address = start + _SIZE + -(start + _SIZE) % 64
        self.write(0, struct.pack("=QQQ", self.address, 0, self.address))
        self.write(_TID_AT, struct.pack("=I", tid))
        self.write(_STATE_AT, struct.pack("=I", state))

    def write(self, offset: int, data: bytes) -> None:
        ctypes.memmove(self.address + offset, data, len(data))

    def joined(self, glibc: int = 43, value: int = _JOINABLE) -> SyncObject | None:
        address = self.address + _STATE_AT
        wait = FutexWait(address, value, private=False, plain=False, inherits=False, timed=False)
        context = ctypes.string_at(address - BEFORE, BEFORE + AFTER)
        return join_states.find_join(os.getpid(), wait, context, TIDS, glibc)


def test_the_word_of_a_living_thread_is_a_join() -> None:
    memory = PthreadMemory(101)
    state_address = memory.address + _STATE_AT
    assert memory.joined() == SyncObject(Kind.JOIN, state_address, awaits=101)


@pytest.mark.parametrize("tid", [0, 999])
def test_a_struct_without_a_living_thread_is_none(tid: int) -> None:
    assert PthreadMemory(tid).joined() is None


def test_an_earlier_glibc_and_other_states_are_no_join() -> None:
    assert PthreadMemory(101).joined(glibc=42) is None
    assert PthreadMemory(101, state=3).joined() is None
    assert PthreadMemory(101).joined(value=100) is None


def test_memory_that_does_not_name_itself_is_no_join() -> None:
    memory = PthreadMemory(101)
    memory.write(16, bytes(8))
    assert memory.joined() is None


def test_a_state_is_never_the_thread_of_that_number() -> None:
    wait = FutexWait(0x1000, 2, private=False, plain=False, inherits=False, timed=False)
    context = bytes(BEFORE) + struct.pack("=I", 2) + bytes(AFTER - 4)
    assert nptl_objects.recognise(wait, context, TIDS, 42) == SyncObject(
        Kind.JOIN, 0x1000, awaits=2
    )
    for glibc in (0, 43):
        assert nptl_objects.recognise(wait, context, TIDS, glibc) is None
