"""A process whose threads all wait, each of them for something else."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import (
    ActivityState,
    Frame,
    Hang,
    Kind,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    UnobservedWait,
)

_PYTHON = Frame(0x30, "_PyEval_Vector", None, None, "libpython3.11.so.1.0", 0x30)
_STACKS = {
    1: (records.frame("fill", "pool.c", 20), records.frame("main", "main.c", 9)),
    2: (_PYTHON, records.frame("compute", "ext.c", 5)),
    3: tuple(records.frame("descend", "tree.c", 1 + n) for n in range(31)),
    4: (replace(records.frame("drain", "pool.c", 30), inlined=True),),
}


def _waits(tid: int, name: str, kind: Kind, lock: int, stack: int = 1, **more: object) -> Thread:
    wait = replace(records.wait(lock, kind, 12.5, stack=stack), site=0, **more)
    return records.thread(tid, name, ThreadState.WAITING, waiting_for=wait)


def _blocked(tid: int, name: str, stack: int = 0) -> Thread:
    now = ThreadActivity(tid, ActivityState.BLOCKED, stack=stack)
    return records.thread(tid, name, ThreadState.OTHER, now=now)


def _threads() -> tuple[Thread, ...]:
    ended = replace(records.thread(30, "gone", ThreadState.OTHER), alive=False)
    return (
        *(_waits(10 + n, f"pool-{n}", Kind.MUTEX, 1) for n in range(5)),
        _waits(15, "reader", Kind.MUTEX, 1, stack=4),
        _waits(16, "joiner", Kind.JOIN, 2, awaits=10),
        _waits(17, "orphan", Kind.JOIN, 2, awaits=99),
        _waits(18, "meeter", Kind.BARRIER, 3, stack=0, parties=3),
        _waits(19, "sleeper", Kind.FUTEX, 4, stack=0),
        _waits(20, "dreamer", Kind.FUTEX, 5, stack=3),
        _blocked(21, "calls-in", stack=2),
        _blocked(22, "queued"),
        _blocked(23, "typed", stack=1),
        _blocked(24, "bare"),
        _blocked(25, "lost", stack=4),
        _blocked(26, "feeder"),
        _blocked(27, "eater"),
        _waits(28, "pool-5", Kind.MUTEX, 1),
        ended,
    )


def hung(certain: bool = True, **more: object) -> Snapshot:
    """Return a hang over every kind of wait; two threads wait for other processes."""
    whole = Hang(
        certain=certain,
        since_s=12.5,
        tids=tuple(range(10, 29)),
        doubt="" if certain else "a handler of SIGTERM may wake a thread",
        changed_words={12: 3},
        calls={26: "write(1 -> pipe:[77])", 27: "read(0 -> pipe:[78])"},
        gil_waiters=(21,),
    )
    locks = (
        records.lock(1, "g_pool"),
        records.lock(3, "barrier g_meeting", Kind.BARRIER),
        records.lock(4, "std::latch", Kind.FUTEX),
    )
    unobserved = (
        UnobservedWait(22, name="g_queue", type="Rust Mutex"),
        UnobservedWait(23, type="Rust Mutex", stack=4),
        UnobservedWait(24),
    )
    return records.snapshot(
        _threads(), locks, hang=replace(whole, **more), stacks=_STACKS,
        unobserved_waits=unobserved, sites={},
    )  # fmt: skip
