"""Snapshots of threads that wait behind each other."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import (
    ActivityState,
    Held,
    HolderEvidence,
    Kind,
    Lock,
    LockRates,
    LockUse,
    ProbableHolder,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    Wait,
)

POOL, INDEX = 20, 10
HOLDER, FIRST_USER, FIRST_WORKER = 100, 200, 300
#: The units of the pool.
UNITS = 8
#: The holder in sampled(), where only its code shows that it is one.
PROBABLY = (ProbableHolder(tid=HOLDER, evidence=HolderEvidence.GUARD, site=0),)


def _waits(tid: int, name: str, lock: int, kind: Kind, s: float, *holders: int) -> Thread:
    wait = Wait(lock, kind, s, holders, 1, 0x401100, seq=1)
    return records.thread(
        tid, f"{name}-{tid}", ThreadState.WAITING, waiting_for=wait, wait_s={kind: s}
    )


def pool_behind_index(workers: int = 292, duration_s: float = 12.0) -> Snapshot:
    """Return a crowd that waits for a connection; all holders of one wait for the index lock.

    One thread holds the index lock and reads a file.
    """
    use = (LockUse(POOL, acquisitions=3, signals=2),)
    users = [
        replace(_waits(FIRST_USER + i, "user", INDEX, Kind.MUTEX, duration_s, HOLDER), uses=use)
        for i in range(UNITS)
    ]
    crowd = [
        _waits(FIRST_WORKER + i, "worker", POOL, Kind.SEM, duration_s - 1.0) for i in range(workers)
    ]
    reader = records.thread(
        HOLDER, "loader", ThreadState.OTHER, holds=(Held(INDEX, 0x401300, duration_s + 1.0),)
    )
    return records.snapshot((reader, *users, *crowd), _locks(workers, duration_s))


def _locks(workers: int, duration_s: float) -> tuple[Lock, ...]:
    reads = ThreadActivity(
        HOLDER, ActivityState.BLOCKED, call="read", what="read(7 -> /var/lib/x/index)",
        duration_s=3.0,
    )  # fmt: skip
    index = records.lock(
        INDEX, "g_index_lock", holders=(HOLDER,), holder_activity=reads, contended=UNITS,
        waiters=tuple(range(FIRST_USER, FIRST_USER + UNITS)), wait_s=UNITS * duration_s,
        wait_max_s=duration_s, rates=LockRates(wait=float(UNITS)),
    )  # fmt: skip
    pool = records.lock(
        POOL, "g_pool", Kind.SEM, first_value=UNITS, used_as_lock=True, contended=workers,
        waiters=tuple(range(FIRST_WORKER, FIRST_WORKER + workers)),
        life_acquisitions=3 * UNITS, life_signals=2 * UNITS, signals=2 * UNITS,
        wait_s=workers * (duration_s - 1.0), wait_max_s=duration_s - 1.0,
        rates=LockRates(wait=float(workers)),
    )  # fmt: skip
    return records.some_idle(pool, 0.0), index


def sampled(**of_lock: object) -> Snapshot:
    """Return a process without the library. Two threads wait for a reader-writer lock that names no
    holder, and a third one receives from a socket."""
    asleep = ThreadActivity(
        HOLDER, ActivityState.BLOCKED, call="recvfrom", what="recvfrom(3)", duration_s=21.0
    )
    waiters = [
        _waits(FIRST_USER + number, "order", INDEX, Kind.RWLOCK, 20.0) for number in range(2)
    ]
    charger = records.thread(HOLDER, "charger", ThreadState.OTHER)
    lock = records.lock(
        INDEX, "orders", Kind.RWLOCK, waiters=tuple(thread.tid for thread in waiters),
        holder_activity=asleep, **of_lock,
    )  # fmt: skip
    return replace(records.snapshot((charger, *waiters), (lock,)), source="proc")


def writers(count: int) -> Snapshot:
    """Return writers that each wait for a lock of their own, and one thread that runs.

    No holder is known: a condition has none.
    """
    waiting = [
        replace(
            _waits(FIRST_USER + i, "writer", i + 1, Kind.COND, 1.0 + i / 100),
            state=ThreadState.WAITING,
        )
        for i in range(count)
    ]
    locks = [
        replace(
            records.lock(i + 1, f"AwaitState[{i}]", Kind.COND, waiters=(FIRST_USER + i,)),
            idle=False,
        )
        for i in range(count)
    ]
    leader = records.thread(HOLDER, "leader", ThreadState.OTHER)
    return records.snapshot((leader, *waiting), tuple(locks))
