"""A program to simulate: its threads repeat operations, and share locks and CPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct


class Do(IntEnum):
    """The types of operation, as in ``enum lt_operation_type`` of ``native/reader/simulator.h``."""

    COMPUTE = 0  # uses a CPU; amount: ns
    SLEEP = 1  # uses nothing; amount: ns
    TAKE = 2  # gets a lock, alone; lock: its index
    SHARE = 3  # gets an rwlock as a reader
    RELEASE = 4
    WAIT = 5  # takes a unit of a semaphore or of a queue, and sleeps while there is none
    POST = 6  # adds ``amount`` units and wakes a thread that waits
    MEET = 7  # waits at a barrier
    ROUND = 8  # one more round is done


class Operation(NamedTuple):  # the simulator packs thousands of them
    """One operation of a thread."""

    do: int  # of Do
    lock: int = 0  # index in Program.locks
    amount: int = 0


class LockType(IntEnum):
    """How a simulated lock behaves, as in ``enum lt_lock_type`` of the same file."""

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


class Outcome(Struct, frozen=True):
    """The counts of a simulation after its warm-up."""

    rounds: list[int]  # by thread
    wait_ns: list[int]  # by lock
    stopped: int  # threads that only waited
    cpu_ns: int  # of all threads
    span_ns: int


class Simulation(Protocol):
    """Runs one program."""

    def run(self, warm_up_ns: int, span_ns: int) -> Outcome:
        """Simulate ``warm_up_ns``, then count for ``span_ns``."""


#: Returns the simulation of a program, with a seed. The analysis imports the model alone, so its
#: caller passes the simulator in.
MakeSimulation: TypeAlias = Callable[[Program, int], Simulation]


def rests(operations: Sequence[Operation]) -> list[int]:
    """Return the operations before which the thread holds nothing. The first is one of them.

    A thread that takes units of a semaphore and posts them holds such a unit meanwhile.
    """
    waited = {operation.lock for operation in operations if operation.do == Do.WAIT}
    posted = {operation.lock for operation in operations if operation.do == Do.POST}
    numbers, held = [0], 0
    for number, (do, lock, _) in enumerate(operations[:-1]):
        is_own_unit = lock in waited and lock in posted
        if do in (Do.TAKE, Do.SHARE) or (do == Do.WAIT and is_own_unit):
            held += 1
        elif do == Do.RELEASE or (do == Do.POST and is_own_unit):
            held -= 1
        if not held:
            numbers.append(number + 1)
    return numbers
