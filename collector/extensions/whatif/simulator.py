"""Simulates a program in C (``native/reader/simulator.c``): packs it, and unpacks the counts."""

from __future__ import annotations

import errno
from array import array
from collections.abc import Iterable
from itertools import chain
from random import Random
from typing import Any

from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Outcome,
    Program,
    ThreadModel,
    rests,
)
from locktop.collector.native import ffi, lib

#: Numbers of 64 bits. The simulation itself limits each time and each number of units.
_MIN, _MAX = -(1 << 63), (1 << 63) - 1


class Simulator:
    """Runs one program."""

    def __init__(self, program: Program, seed: int = 1) -> None:
        random = Random(seed)
        threads = program.threads
        starts = [_start(thread, random) for thread in threads]
        self._operations = _pack(chain.from_iterable(thread.operations for thread in threads))
        self._threads = array("q")
        for thread, start in zip(threads, starts, strict=True):
            self._threads.extend((len(thread.operations), start, thread.is_other))
        self._locks = _pack((lock.type, lock.units) for lock in program.locks)
        self._wakes_ns = _pack((ns,) for ns in program.wakes_ns)
        self._program: Any = ffi.new(
            "struct lt_program *",
            {
                "operations": ffi.from_buffer("struct lt_operation[]", self._operations),
                "threads": ffi.from_buffer("struct lt_thread_model[]", self._threads),
                "locks": ffi.from_buffer("struct lt_lock_model[]", self._locks),
                "wakes_ns": ffi.from_buffer("int64_t[]", self._wakes_ns),
                "operation_count": sum(len(thread.operations) for thread in threads),
                "thread_count": len(threads),
                "lock_count": len(program.locks),
                "wake_count": len(program.wakes_ns),
                "cpus": max(1, program.cpus),
                "seed": random.getrandbits(64),
            },
        )

    def run(self, warm_up_ns: int, span_ns: int) -> Outcome:
        """Simulate ``warm_up_ns``, then count for ``span_ns``.

        A change may make much more happen in the same time. So a simulation also ends after some
        number of events. Then the outcome has the shorter span.

        Raises:
            MemoryError: the program is too large.
            ValueError: a thread has no operation, or an operation no lock.
        """
        rounds = ffi.new("uint64_t[]", self._program.thread_count)
        wait_ns = ffi.new("uint64_t[]", self._program.lock_count)
        outcome = ffi.new("struct lt_outcome *", {"rounds": rounds, "wait_ns": wait_ns})
        error = lib.lt_simulate(self._program, warm_up_ns, span_ns, outcome)
        if error == -errno.ENOMEM:
            raise MemoryError
        if error:
            raise ValueError("a thread without operations, or an operation without its lock")
        return Outcome(
            rounds=list(rounds),
            wait_ns=list(wait_ns),
            stopped=outcome.stopped,
            cpu_ns=outcome.cpu_ns,
            span_ns=outcome.span_ns,
        )


def _start(thread: ThreadModel, random: Random) -> int:
    """Return the operation with which a thread begins.

    The recorded threads begin together, for each may wait for what another one does then.
    """
    is_recorded = not thread.is_other and not thread.is_copy
    return 0 if is_recorded else random.choice(rests(thread.operations))


def _pack(rows: Iterable[Iterable[int]]) -> array[int]:
    """Return the numbers of some rows, one after the other."""
    numbers = list(chain.from_iterable(rows))
    try:
        return array("q", numbers)
    except OverflowError:
        return array("q", [min(max(number, _MIN), _MAX) for number in numbers])
