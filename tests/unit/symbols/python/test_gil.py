"""The GIL of this process, which the reading thread has itself."""

from __future__ import annotations

import os
import struct
from ctypes import addressof, create_string_buffer

from locktop.collector.symbols.python import gil
from locktop.collector.symbols.python.interpreter_state import InterpreterState, find_state


def own_state() -> InterpreterState:
    state = find_state(os.getpid())
    assert state is not None
    return state


def reading(
    state: InterpreterState, interval_us: int, holder: int, flag: int, offset: int = 0
) -> gil.GilReading | None:
    """Read a made GIL by the address of a word in its condition."""
    memory = create_string_buffer(struct.pack("=QQi4xQ", interval_us, holder, flag, 7) + b"\0" * 48)
    return gil.read(os.getpid(), state, addressof(memory) + 32 + offset)


def test_the_holder_is_a_living_thread_and_the_flag_is_set() -> None:
    state, tid = own_state(), os.getpid()
    holder = state.threads({tid})[tid]
    for offset in (0, 40, 44, 32, 36):
        result = reading(state, 5000, holder, 1, offset)
        assert result is not None
        assert (result.holder, result.switches) == (tid, 7)
    assert reading(state, 5000, holder, 0) is None
    assert reading(state, 5000, 0, 1) is None
    assert reading(state, 0, holder, 1) is None
    assert reading(state, 5000, holder + 8, 1) is None
    assert reading(state, 1 << 50, holder, 1) is None
