"""Builders of single records: a frame, a thread, a lock, a wait, and a snapshot of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from msgspec.structs import replace

from locktop.collector.analysis import time_split
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.model import (
    CONTENTION_KINDS,
    WAITS_ALONE,
    Frame,
    Kind,
    Lock,
    PlainHistogram,
    Process,
    Snapshot,
    TakenUnits,
    Thread,
    ThreadState,
    UnitTaker,
    Wait,
)
from locktop.collector.model.histograms import bucket_of

PID = 4711

Made = ParamSpec("Made")


def classified(make: Callable[Made, Snapshot]) -> Callable[Made, Snapshot]:
    """Mark the idle waits of the snapshot of ``make``, as a source does for each snapshot."""

    @wraps(make)
    def made(*arguments: Made.args, **named: Made.kwargs) -> Snapshot:
        return Classifier().classify(make(*arguments, **named))

    return made


def frame(function: str, file: str, line: int, address: int = 0x401000) -> Frame:
    return Frame(address, function, f"/src/store/{file}", line, "store", address - 0x400000)


def histogram(*lengths_ns: int, left_out: int = 0) -> PlainHistogram:
    """Return the histogram of some lengths, with ticks of a nanosecond."""
    counts = Counter(map(bucket_of, lengths_ns))
    buckets = tuple(sorted(counts))
    return PlainHistogram(buckets, tuple([counts[one] for one in buckets]), 1e9, left_out)


SITES = {
    0x401100: frame("cache_put", "cache.c", 88),
    0x401200: frame("take_left", "ring.c", 31),
    0x401300: frame("journal_write", "journal.c", 210),
    0x401400: Frame(0x401400, "", None, None, "libplugin.so", 0x1400),
}

STACKS = {
    1: (
        frame("cache_get", "cache.c", 42),
        frame("serve_get", "serve.c", 130),
        frame("serve_one", "serve.c", 77),
        frame("worker_main", "worker.c", 25),
        Frame(0x7F0000001000, "start_thread", None, None, "libc.so.6", 0x89000),
    ),
    2: (
        frame("cache_put", "cache.c", 88),
        frame("serve_put", "serve.c", 164),
        frame("serve_one", "serve.c", 79),
        frame("worker_main", "worker.c", 25),
        Frame(0x7F0000001000, "start_thread", None, None, "libc.so.6", 0x89000),
    ),
    3: (
        frame("queue_take", "queue.c", 19),
        frame("pool_main", "pool.c", 12),
        Frame(0x7F0000001000, "start_thread", None, None, "libc.so.6", 0x89000),
    ),
    4: (
        frame("take_right", "ring.c", 36),
        frame("philosopher", "ring.c", 52),
        Frame(0x7F0000001000, "start_thread", None, None, "libc.so.6", 0x89000),
    ),
    6: (
        Frame(0x7F0000003000, "memcpy", None, None, "libc.so.6", 0x99000),
        frame("cache_copy", "cache.c", 61),
        frame("cache_put", "cache.c", 92),
        frame("serve_put", "serve.c", 164),
        frame("worker_main", "worker.c", 25),
    ),
    7: (
        frame("journal_flush", "journal.c", 233),
        frame("journal_write", "journal.c", 217),
        frame("journal_main", "journal.c", 18),
    ),
    5: (
        frame("table::lookup(table::key const&, std::shared_mutex&)", "table.cc", 301),
        Frame(0x7F0000002000, "", None, None, "libplugin.so", 0x2000),
        frame("main", "main.c", 9),
    ),
}


#: Threads that took all units of a semaphore.
TAKEN = TakenUnits(
    all=4, takers=(UnitTaker(PID, 2, 0x401100, 3, True), UnitTaker(PID + 1, 1)), ended=1
)


def wait(
    lock: int, kind: Kind, duration_s: float, *holders: int, stack: int = 1, **more: bool
) -> Wait:
    idle = kind not in CONTENTION_KINDS
    return Wait(lock, kind, duration_s, holders, stack, 0x401100, seq=2, idle=idle, **more)


def thread(tid: int, name: str, state: ThreadState, **more: object) -> Thread:
    made = replace(Thread(tid, name, True, state, None, (), {}, 0.0, 0, 0), **more)
    if "time" in more:
        return made
    # A thread that runs for long also waits for a CPU for some time.
    used = time_split.Used(made.cpu_share, made.cpu_share / 5, None)
    time = time_split.split(1.0, used, made.wait_share, made.idle_share)
    return replace(made, time=time)


def lock(id: int, name: str, kind: Kind = Kind.MUTEX, **more: object) -> Lock:
    made = Lock(
        id,
        0x55D0_0000_1000 + id * 64,
        kind,
        name,
        wait_max_s=0.0,
        hold_max_s=0.0,
        holders=(),
        waiters=(),
        wait_stacks=(),
        acquisitions=0,
        trylock_failed=0,
        signals=0,
        unheard=0,
        wait_s=0.0,
        hold_s=0.0,
    )
    made = replace(made, idle=kind not in CONTENTION_KINDS, **more)
    return replace(made, idle_s=made.wait_s if made.idle else 0.0)


def some_idle(lock: Lock, idle_s: float) -> Lock:
    """Return a lock with contention that has ``idle_s`` seconds of idle waits too."""
    return replace(lock, idle=False, idle_s=idle_s)


def snapshot(threads: tuple[Thread, ...], locks: tuple[Lock, ...], **more: object) -> Snapshot:
    made = Snapshot(
        taken_at="2026-11-21T03:12:45.678Z",
        host="db1",
        source="preload",
        duration_s=3725.0,
        interval_s=0.5,
        process=Process(
            PID,
            "store",
            ("store", "--port", "7000"),
            "/usr/bin/store",
            "2026-11-21T02:10:40Z",
            2.37,
            181_000_000,
        ),
        threads=threads,
        locks=locks,
        stacks=STACKS,
        sites=SITES,
    )
    return replace(made, **more)


def sampled(of: Snapshot) -> Snapshot:
    """Return a snapshot as sampling makes it: without the figures that samples do not show."""
    return replace(
        of,
        source="proc",
        level="sampled",
        threads=tuple(
            replace(thread, acquisitions=None, contended=None, uses=None) for thread in of.threads
        ),
        locks=tuple(
            replace(
                lock,
                acquisitions=None,
                trylock_failed=None,
                signals=None,
                unheard=None,
                hold_s=None,
                hold_timed=0,
                hold_max_s=None,
                rates=replace(WAITS_ALONE, wait=lock.rates.wait),
            )
            for lock in of.locks
        ),
    )
