"""Programs to simulate, and records of one, written by hand."""

from __future__ import annotations

from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
    ThreadModel,
)
from locktop.collector.model import Kind, WaitRecord

US = 1000
ROUND = Operation(Do.ROUND)


def compute(us: float) -> Operation:
    return Operation(Do.COMPUTE, amount=round(us * US))


def sleep(us: float) -> Operation:
    return Operation(Do.SLEEP, amount=round(us * US))


def holding(lock: int, *inside: Operation, do: Do = Do.TAKE) -> tuple[Operation, ...]:
    return (Operation(do, lock), *inside, Operation(Do.RELEASE, lock))


def program(
    *threads: tuple[int, tuple[Operation, ...]],
    locks: tuple[LockModel, ...] = (LockModel(65, LockType.MUTEX),),
    cpus: int = 2,
    wake_us: float = 0.0,
) -> Program:
    """A program of groups: the number of threads and the operations of each."""
    models = [
        ThreadModel(
            tid=100 * group + number + 1, group=f"group{group}", role=1, operations=operations
        )
        for group, (count, operations) in enumerate(threads)
        for number in range(count)
    ]
    return Program(
        threads=tuple(models),
        locks=locks,
        cpus=cpus,
        wakes_ns=(round(wake_us * US),),
        span_ns=1_000_000,
        rounds_per_s={},
    )


def hold(
    tid: int, lock: int, got_us: float, hold_us: float, wait_us: float = 0.0, site: int = 1
) -> WaitRecord:
    """The record of an acquisition, at times in microseconds."""
    return WaitRecord(
        tid=tid,
        lock=lock,
        kind=Kind.MUTEX,
        began_ns=round((got_us - wait_us) * US),
        wait_ns=round(wait_us * US),
        hold_ns=round(hold_us * US),
        stack=0,
        holder=0,
        site=site,
    )
