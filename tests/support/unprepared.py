"""Scans of processes that run without the library."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from locktop.collector.model import Kind, Snapshot, Wait
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.attach import attach
from support import gdb
from support.targets import PATIENCE_S
from support.watched import checked

Result = TypeVar("Result")


def scan_until(pid: int, is_so: Callable[[Snapshot], bool]) -> Snapshot:
    """Scan until ``is_so`` returns true; return that snapshot, with names."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while not is_so(seen := source.scan(resolve=True)):
            assert time.monotonic() < deadline, seen
    assert seen.source == "proc"
    return seen


def wait_of(seen: Snapshot, tid: int) -> Wait | None:
    """Return the wait of a thread; None if it does not wait or does not exist."""
    return next((thread.waiting_for for thread in seen.threads if thread.tid == tid), None)


def all_wait(tids: Iterable[int]) -> Callable[[Snapshot], bool]:
    """Return a condition: all of these threads wait, and their stacks are known."""
    wanted = list(tids)

    def is_so(seen: Snapshot) -> bool:
        waits = [wait_of(seen, tid) for tid in wanted]
        return all(wait is not None and wait.stack for wait in waits)

    return is_so


def functions(seen: Snapshot, tid: int) -> list[str]:
    """Return the function names of a waiting thread's stack, innermost first."""
    wait = wait_of(seen, tid)
    assert wait is not None
    return [frame.function for frame in seen.stacks[wait.stack]]


def crossed(seen: Snapshot) -> list[set[tuple[int, int]]]:
    """Return the certain deadlocks, each as pairs of a waiting thread and the holder."""
    return [
        {(edge.tid, edge.held_by) for edge in deadlock.cycle}
        for deadlock in seen.deadlocks
        if deadlock.certain
    ]


def scans_while(pid: int, work: Callable[[], Result]) -> tuple[Result, list[Snapshot]]:
    """Scan a process while ``work`` runs; check that no snapshot contradicts itself.

    Returns:
        The result of ``work``, and the snapshots.
    """
    snapshots: list[Snapshot] = []
    with ThreadPoolExecutor(1) as pool, closing(attach(pid)) as source:
        done = pool.submit(work)
        while not done.done():
            snapshots.append(source.scan(resolve=len(snapshots) % 4 == 3))
            checked(document(snapshots[-1]))
            assert snapshots[-1].deadlocks == ()
        return done.result(), snapshots


#: The kind of a wait, by the beginning of the name of the called function.
_CALLED = {
    "pthread_cond_": Kind.COND,
    "pthread_mutex_": Kind.MUTEX,
    "pthread_rwlock_": Kind.RWLOCK,
    "pthread_barrier_": Kind.BARRIER,
    "pthread_clockjoin_ex": Kind.JOIN,
    "pthread_join": Kind.JOIN,
    "do_futex_wait": Kind.SEM,
    "sem_": Kind.SEM,
    "syscall": Kind.FUTEX,
}


def beside_gdb(pid: int, gdb_: Path, directory: Path) -> dict[Kind, int]:
    """Compare the waits of threads with the functions that gdb finds on their stacks.

    Only waits that are the same before and after gdb's visit count, so the threads must be idle.

    Returns:
        The number of these waits by kind, as gdb sees them.
    """
    counts: Counter[Kind] = Counter()
    with closing(attach(pid)) as source:
        before = source.scan()
        called = gdb.functions(gdb_, pid, directory)
        after = source.scan()
    for thread in after.threads:
        wait, earlier = thread.waiting_for, wait_of(before, thread.tid)
        if wait is None or earlier is None or wait.lock != earlier.lock:
            continue
        kind = _kind(called.get(thread.tid, []))
        assert kind in (wait.kind, None), (thread, called[thread.tid])
        if kind is not None:
            counts[kind] += 1
    return counts


def _kind(functions: list[str]) -> Kind | None:
    for function in functions:
        name = function.lstrip("_").removeprefix("GI_").lstrip("_")
        for begin, kind in _CALLED.items():
            if name.startswith(begin):
                return kind
    return None
