"""Python's global interpreter lock (GIL) in the memory of a process, and the thread that has it.

The GIL is a flag, with the condition at which threads wait for it. The state of the last thread
that took it lies before them. So does the number of times that it went from one thread to another.
The layout is the same from CPython 3.8 to 3.14 (Include/internal/pycore_gil.h).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from locktop.collector.linux import process_memory, thread_descriptor
from locktop.collector.symbols.python.interpreter_state import InterpreterState

#: Seconds between two requests in microseconds, last holder, flag, number of switches.
_GIL = struct.Struct("=QQi4xQ")
_MAX_INTERVAL_US = 3_600_000_000
#: Offsets within a pthread_cond_t at which a thread may wait, for a condition that is not known.
_WORDS_AT = (0, 40, 44, 32, 36)
_COND_SIZE = 48  # bytes of a pthread_cond_t


class GilReading(NamedTuple):
    """The GIL at one moment."""

    condition: int  # address
    holder: int  # tid
    switches: int


def is_at(address: int, condition: int) -> bool:
    """Return whether a thread that waits at an address waits at this condition."""
    return 0 <= address - condition < _COND_SIZE


def read(pid: int, state: InterpreterState, address: int) -> GilReading | None:
    """Return the GIL for which a thread waits; None if no thread has it, or it is no GIL.

    Args:
        pid: the process.
        state: that of its interpreter.
        address: of the condition at which the thread waits, or of a word in it.
    """
    conditions = [address - offset for offset in _WORDS_AT]
    wanted = [(condition - _GIL.size, _GIL.size) for condition in conditions]
    for condition, data in zip(conditions, process_memory.read_many(pid, wanted), strict=True):
        if len(data) < _GIL.size:
            continue
        interval_us, holder, flag, switches = _GIL.unpack(data)
        if flag != 1 or not holder or not 0 < interval_us <= _MAX_INTERVAL_US:
            continue
        descriptor = state.word(holder + state.layout.thread_id_at)
        tid = thread_descriptor.tids_of(pid, [descriptor]).get(descriptor, 0)
        if tid:
            return GilReading(condition, tid, switches)
    return None
