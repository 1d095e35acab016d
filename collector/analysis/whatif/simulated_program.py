"""A program to simulate: its threads repeat operations, and share locks and CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct


class Do(IntEnum):
    """The types of operation."""

    COMPUTE = 0  # uses a CPU; amount: ns
    SLEEP = 1  # uses nothing; amount: ns
    TAKE = 2  # gets a lock, alone; lock: its index
    SHARE = 3  # gets an rwlock as a reader
    RELEASE = 4
    WAIT = 5  # takes a unit of a semaphore or of a queue, and sleeps while there is none
    POST = 6  # adds ``amount`` units and wakes a thread that waits
    MEET = 7  # waits at a barrier
    ROUND = 8  # one more round is done


class Operation(NamedTuple):  # the simulator unpacks thousands of them
    """One operation of a thread."""

    do: int  # of Do
    lock: int = 0  # index in Program.locks
    amount: int = 0


class LockType(IntEnum):
    """How a simulated lock behaves."""

    MUTEX = 0
    RWLOCK = 1
    UNITS = 2  # a semaphore, or a queue between threads
    BARRIER = 3


class LockModel(Struct, frozen=True):
    """A lock of a program. ``lock`` is the id of the real lock that it stands for."""

    lock: int
    type: LockType
    #: units at the begin; of a barrier: the threads that meet
    units: int = 0
    waiter: int = 0  # tid of the only thread that takes the units; 0: any thread


class ThreadModel(Struct, frozen=True):
    """A thread that repeats its operations for ever."""

    tid: int
    group: str  # the name without its number
    role: int  # the same for threads that repeat the same calls
    operations: tuple[Operation, ...]
    #: of another program: the scheduler gives it a CPU before any thread of this one
    is_other: bool = False
    is_copy: bool = False  # has the operations of another thread, too


class Program(Struct, frozen=True):
    """A program: its threads, its locks and the machine that it has."""

    threads: tuple[ThreadModel, ...]
    locks: tuple[LockModel, ...]
    cpus: int
    #: from the call that wakes a thread until this thread is ready to run, in equally likely cases
    wakes_ns: tuple[int, ...]
    span_ns: int  # of the records that the operations are from
    rounds_per_s: Mapping[str, float]  # by group of threads, as recorded
    others_cpus: float = 0.0  # CPUs that other programs use
    is_limited: bool = False  # a limit of CPU time holds, and not the number of CPUs


def rests(operations: Sequence[Operation]) -> list[int]:
    """Return the operations before which the thread holds nothing. The first is one of them.

    A thread that takes units of a semaphore and posts them holds such a unit meanwhile.
    """
    waited = {one.lock for one in operations if one.do == Do.WAIT}
    posted = {one.lock for one in operations if one.do == Do.POST}
    found, held = [0], 0
    for number, (do, lock, _) in enumerate(operations[:-1]):
        is_own_unit = lock in waited and lock in posted
        if do in (Do.TAKE, Do.SHARE) or (do == Do.WAIT and is_own_unit):
            held += 1
        elif do == Do.RELEASE or (do == Do.POST and is_own_unit):
            held -= 1
        if not held:
            found.append(number + 1)
    return found
