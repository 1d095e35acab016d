"""Whole snapshots: each shows one situation of a process."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders.records import classified, frame, lock, snapshot, thread, wait

from locktop.collector.model import (
    ActivityState,
    Blame,
    Confidence,
    Deadlock,
    DeadlockEdge,
    Event,
    Held,
    Kind,
    Lock,
    LockRates,
    OrderCycle,
    OrderEdge,
    Pattern,
    PatternName,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    WaitStack,
)
from locktop.collector.render.words.patterns import ADVICE

_POOLS = ("accept", "http", "db", "cache", "log", "gc")


def _idle(tid: int, name: str, duration_s: float) -> Thread:
    return thread(
        tid,
        name,
        ThreadState.IDLE,
        waiting_for=wait(5, Kind.COND, duration_s, stack=3),
        wait_s={Kind.COND: 3600.0 + tid},
        acquisitions=800 + tid,
        idle_share=1.0,
        cpu_s=0.4,
    )


def _waiting_threads() -> tuple[Thread, ...]:
    """The main thread joins; two workers wait for the lock of a third worker."""
    busy = ThreadState.WAITING
    return (
        thread(
            4711,
            "store",
            ThreadState.IDLE,
            waiting_for=wait(6, Kind.JOIN, 3720.0, stack=0),
            wait_s={Kind.JOIN: 3720.0},
            cpu_s=0.02,
            idle_share=1.0,
        ),
        thread(
            4712,
            "worker-0",
            busy,
            waiting_for=wait(1, Kind.MUTEX, 0.234, 4714),
            wait_s={Kind.MUTEX: 1875.2, Kind.COND: 1.5},
            wait_share=0.97,
            cpu_s=61.0,
            acquisitions=1_204_331,
            contended=88_120,
            cpu_share=0.02,
        ),
        thread(
            4713,
            "worker-1",
            busy,
            waiting_for=wait(1, Kind.MUTEX, 0.0812, 4714, stack=2),
            wait_s={Kind.MUTEX: 1790.9},
            wait_share=0.91,
            cpu_s=66.7,
            acquisitions=1_190_007,
            contended=87_455,
            cpu_share=0.08,
        ),
    )


def _busy_threads() -> tuple[Thread, ...]:
    """A worker that runs with the hot lock, a reader that waits, a writer in a system call."""
    return (
        thread(
            4714,
            "worker-2",
            ThreadState.RUNNING,
            holds=(Held(1, 0x401100, 0.0931),),
            wait_s={Kind.MUTEX: 1522.0},
            wait_share=0.41,
            cpu_s=402.0,
            acquisitions=1_240_118,
            contended=90_034,
            cpu_share=0.58,
        ),
        thread(
            4715,
            "reader",
            ThreadState.WAITING,
            waiting_for=wait(2, Kind.RWLOCK, 1.27, 4716, stack=5, shared=True),
            wait_s={Kind.RWLOCK: 310.4},
            wait_share=1.0,
            cpu_s=9.1,
            acquisitions=9_310,
            contended=820,
        ),
        thread(
            4716,
            "journal",
            ThreadState.OTHER,
            holds=(Held(2, 0x401300, 1.31), Held(4, 0x401300, 1.3)),
            wait_s={},
            cpu_s=12.0,
            acquisitions=2_004,
            contended=3,
            cpu_share=0.01,
        ),
    )


def _contended_locks() -> tuple[Lock, ...]:
    return (
        lock(
            1,
            "g_cache_lock",
            acquisitions=3_634_456,
            contended=265_609,
            trylock_failed=17,
            wait_s=5188.1,
            wait_max_s=0.412,
            hold_s=3510.0,
            hold_timed=270_114,
            hold_max_s=0.131,
            holders=(4714,),
            waiters=(4712, 4713),
            holder_activity=ThreadActivity(4714, ActivityState.RUNNING, stack=6, cpu=0.58),
            wait_stacks=(WaitStack(1, 190_004, 3720.5), WaitStack(2, 75_605, 1467.6)),
            blame=(Blame(4714, 0x401100, 2410.0), Blame(4712, 0x401100, 1490.0)),
            rates=LockRates(1810.0, 133.0, 1.88, 0.98),
        ),
        lock(
            2,
            "g_table_lock",
            Kind.RWLOCK,
            acquisitions=11_314,
            contended=823,
            wait_s=310.4,
            wait_max_s=4.21,
            hold_s=905.0,
            hold_timed=11_314,
            hold_max_s=4.3,
            holders=(4716,),
            waiters=(4715,),
            holder_activity=ThreadActivity(
                4716, ActivityState.BLOCKED, "fsync", "fsync(7 -> /var/lib/store/journal)", 1.3, 7
            ),
            wait_stacks=(WaitStack(5, 820, 310.4),),
            rates=LockRates(3.2, 0.4, 1.0, 1.0),
        ),
    )


def _quiet_locks() -> tuple[Lock, ...]:
    """Two mutexes with hardly any wait, a condition variable, a joined thread."""
    return (
        lock(
            3,
            "stats_mutex",
            acquisitions=90_234_117,
            contended=4_090,
            wait_s=0.0213,
            wait_max_s=0.0009,
            hold_s=7.2,
            hold_timed=910_220,
            hold_max_s=0.00071,
            wait_stacks=(WaitStack(1, 4_090, 0.0213),),
            rates=LockRates(24_300.0, 1.1, 5e-06, 0.002),
        ),
        lock(
            4,
            "journal_mutex",
            acquisitions=2_004,
            contended=0,
            hold_s=31.0,
            hold_timed=2_004,
            hold_max_s=1.4,
            holders=(4716,),
            rates=LockRates(0.2, 0.0, 0.0, 1.0),
        ),
        lock(
            5,
            "pool_ready",
            Kind.COND,
            acquisitions=2_500,
            contended=2_490,
            wait_s=10_801.0,
            wait_max_s=754.0,
            waiters=(4721, 4720, 4722),
            signals=2_504,
            rates=LockRates(2.0, 2.0, 3.0, signals=2.0),
        ),
        lock(
            6,
            "thread 4712",
            Kind.JOIN,
            waiters=(4711,),
            wait_s=3720.0,
            wait_max_s=3720.0,
            rates=LockRates(wait=1.0),
        ),
    )


def _latest_waits() -> tuple[Event, ...]:
    return tuple(
        Event(
            4712 + i % 2,
            1,
            Kind.MUTEX,
            0.3 + 0.11 * i,
            0.101 - 0.01 * i,
            0.0931,
            1 + i % 2,
            4714,
            0x401100,
            i == 3,
        )
        for i in range(6)
    )


@classified
def normal() -> Snapshot:
    """A hot lock, one slow reader-writer lock, an idle pool."""
    pool = (_idle(4720, "pool-0", 12.4), _idle(4721, "pool-1", 754.0), _idle(4722, "pool-2", 3.02))
    return snapshot(
        (*_waiting_threads(), *_busy_threads(), *pool),
        (*_contended_locks(), *_quiet_locks()),
        events=_latest_waits(),
    )


@classified
def deadlock() -> Snapshot:
    """Three threads in a ring, beside the usual threads."""
    calm = normal()
    ring = tuple(
        thread(
            4730 + i,
            f"philosopher-{i}",
            ThreadState.WAITING,
            waiting_for=wait(10 + (i + 1) % 3, Kind.MUTEX, 41.7 + i, 4730 + (i + 1) % 3, stack=4),
            holds=(Held(10 + i, 0x401200, 42.1 + i),),
            wait_s={Kind.MUTEX: 41.7 + i},
            wait_share=1.0,
            acquisitions=2,
            contended=1,
        )
        for i in range(3)
    )
    forks = tuple(
        lock(
            10 + i,
            f"fork[{i}]",
            acquisitions=2,
            contended=1,
            wait_s=41.7,
            wait_max_s=43.7,
            hold_s=42.0,
            hold_timed=2,
            hold_max_s=42.0,
            holders=(4730 + i,),
            waiters=(4730 + (i - 1) % 3,),
            wait_stacks=(WaitStack(4, 1, 41.7),),
            rates=LockRates(wait=1.0, hold=1.0),
        )
        for i in range(3)
    )
    cycle = tuple(
        DeadlockEdge(4730 + i, 10 + (i + 1) % 3, 4730 + (i + 1) % 3, 4, 0x401200) for i in range(3)
    )
    return replace(
        calm,
        threads=calm.threads + ring,
        locks=forks + calm.locks,
        deadlocks=(Deadlock(True, 41.7, cycle),),
    )


def orders(of: Snapshot | None = None, unproven: int = 3) -> Snapshot:
    """Locks taken in different orders, beside ``of``, with hostile names."""
    calm = of or normal()
    two = (OrderEdge(1, 2, 4712, 1, 0x401100), OrderEdge(2, 1, 4999, 2, 0x401300))
    guess = (
        OrderEdge(2, 3, 4713, 4, 0x401200, shared=True),
        OrderEdge(3, 2, 4714, 0, from_shared=True),
    )
    why = "a third thread has to want to write at that moment"
    cycles = (OrderCycle((1, 2), two), OrderCycle((2, 3), guess, Confidence.MEDIUM, why))
    return replace(calm, lock_order=cycles, lock_order_unproven=unproven)


def oversubscribed() -> Snapshot:
    """More threads than CPUs."""
    evidence = (
        "5 threads want one of 2 CPUs, of which they had 1.9 lately; 3 threads wait for locks"
    )
    name = PatternName.OVERSUBSCRIBED
    return replace(normal(), patterns=(Pattern(name, 0, (4712, 4713), evidence, ADVICE[name]),))


@classified
def many(threads: int = 200, locks: int = 1000, tick: int = 0) -> Snapshot:
    """A large process; from one ``tick`` to the next one row in ten changes."""
    made = []
    for i in range(threads):
        moved = tick if i % 10 == tick % 10 else 0
        waits = i % 3 == 0
        made.append(
            thread(
                5000 + i,
                f"worker-{i:03}",
                ThreadState.WAITING if waits else ThreadState.RUNNING,
                waiting_for=wait(1 + i % 40, Kind.MUTEX, 3.0 + i + 0.25 * moved, 5001 + i)
                if waits
                else None,
                wait_s={Kind.MUTEX: 100.0 + i},
                wait_share=0.9 if waits else 0.1,
                cpu_share=((i * 7 + moved) % 100) / 100,
                acquisitions=1000 * i,
                contended=10 * i,
            )
        )
    named = tuple(
        lock(
            1 + i,
            f"shard{i}.mutex",
            acquisitions=10_000 + i,
            contended=5_000 - i,
            wait_s=max(0.0, 500.0 - i * 0.5),
            wait_max_s=0.5,
            hold_s=10.0,
            hold_timed=100,
            hold_max_s=0.1,
            holders=(5001 + i % threads,) if i < 40 else (),
            waiters=tuple(5000 + j for j in range(i % 40, threads, 40) if j % 3 == 0)
            if i < 40
            else (),
            rates=LockRates(200.0, 10.0 + (tick % 7 if i % 10 == tick % 10 else 0), 0.2, 0.1),
        )
        for i in range(locks)
    )
    return snapshot(tuple(made), named, lost_events=1_234_567)


def calls(tick: int = 0) -> Snapshot:
    """Many call paths to many locks; each ``tick`` adds waits of one lock in ten."""
    ways = 60
    stacks = {
        n: tuple(
            frame(f"step_{depth}_{n % (2 + depth)}", f"step{depth}.c", n, 0x402000 + 16 * depth)
            for depth in range(8, -1, -1)
        )
        for n in range(1, ways + 1)
    }
    locks = tuple(
        lock(
            n,
            f"lock[{n}]",
            wait_s=(waited := 1.0 + (tick + n) // 10),
            wait_stacks=(WaitStack(n, 5, waited),),
        )
        for n in range(1, ways + 1)
    )
    return snapshot((), locks, stacks=stacks)


@classified
def fleet(connections: int = 212, tick: int = 0) -> Snapshot:
    """The usual locks, a mutex in each connection, and eight mutexes in an array.

    Later connections have less wait. A thread holds the mutex of the first connection, and two
    threads wait for that mutex.
    """
    calm = normal()
    threads = tuple(
        replace(one, holds=(Held(1000, 0x401100, 0.2),))
        if one.tid == 4714
        else replace(one, waiting_for=wait(1000, Kind.MUTEX, 0.1, 4714))
        if one.tid in (4712, 4713)
        else one
        for one in calm.threads
    )
    made = tuple(
        lock(
            1000 + i,
            "conn::mu",
            acquisitions=1000 + tick,
            contended=100,
            wait_s=max(0.0, 20.0 - 0.1 * i),
            wait_max_s=0.5,
            hold_s=2.0,
            hold_timed=1000,
            hold_max_s=0.1,
            holders=(4714,) if i == 0 else (),
            waiters=(4712, 4713) if i == 0 else (),
            wait_stacks=(WaitStack(1 + i % 2, 100, max(0.0, 20.0 - 0.1 * i)),),
            destroyed=i % 4 == 3,
            rates=LockRates(10.0, 1.0, 0.01, 0.01),
        )
        for i in range(connections)
    )
    shards = tuple(
        lock(
            2000 + i,
            f"cache.c: shards[{i}].mu",
            acquisitions=50,
            contended=5,
            wait_s=0.5 + 0.01 * i,
            wait_max_s=0.1,
            rates=LockRates(1.0, 0.1, 0.001, 0.0),
        )
        for i in range(8)
    )
    calm_locks = tuple(replace(one, holders=(), waiters=()) for one in calm.locks if one.id == 1)
    rest = tuple(one for one in calm.locks if one.id != 1)
    return replace(calm, threads=threads, locks=calm_locks + made + shards + rest)


@classified
def pools(each: int = 83, duration_s: float = 2.0) -> Snapshot:
    """Six pools and two more threads: three pools wait for their locks, three pools for work."""
    locks = tuple(
        lock(
            10 + n, f"g_{name}_lock", Kind.MUTEX if n % 2 == 0 else Kind.COND,
            wait_s=100.0, waiters=tuple(range(1000 * n, 1000 * n + each)),
        )
        for n, name in enumerate(_POOLS)
    )  # fmt: skip
    threads = tuple(
        thread(
            1000 * n + i,
            f"{name}-{i}",
            ThreadState.WAITING if n % 2 == 0 else ThreadState.IDLE,
            waiting_for=wait(10 + n, locks[n].kind, duration_s + i, stack=1 + n % 3),
            wait_share=1.0 if n % 2 == 0 else 0.0,
        )
        for n, name in enumerate(_POOLS)
        for i in range(each)
    )
    more = tuple(thread(n, f"main{n}", ThreadState.RUNNING) for n in (9001, 9002))
    return snapshot(threads + more, locks)


@classified
def ended() -> Snapshot:
    """The process is gone; its last snapshot is left."""
    return replace(normal(), ended=True, notes=("the process has ended",))


def empty() -> Snapshot:
    """A process that has just started: one thread and no lock."""
    main = thread(4711, "store", ThreadState.RUNNING, cpu_s=0.01, cpu_share=1.0)
    return snapshot((main,), (), duration_s=0.4)


@classified
def hostile() -> Snapshot:
    """Hostile names: markup, control codes, wide and combining characters."""
    calm = normal()
    names = (
        "[bold]a[/bold]",
        "\x1b[31mred\x07",
        "[@click=app.quit]x[/]",
        "線程の名前",
        "e\u0301\u0301",
    )
    threads = tuple(replace(t, name=names[i % len(names)]) for i, t in enumerate(calm.threads))
    locks = tuple(replace(k, name=names[i % len(names)] + "]") for i, k in enumerate(calm.locks))
    return replace(calm, threads=threads, locks=locks)
