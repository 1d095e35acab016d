"""More threads want a CPU than the process has, while threads wait for locks."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.analysis.contention_findings import Oversubscribed
from locktop.collector.model import Contents, Lock, Thread, ThreadState

_MAX_RUNNABLE = 2  # threads for each CPU
_MAX_WAITED = 0.5  # share of the last interval


def find(
    snapshot: Contents, contended: Iterator[tuple[Lock, list[Thread]]]
) -> Iterator[Oversubscribed]:
    """Yield at most one finding.

    More than 2 threads for each CPU of the process want a CPU, while threads wait for locks. Each
    of these threads was on a CPU in the last interval and waited less than half of it. Threads that
    have only just woken up do not count.

    Args:
        snapshot: A snapshot or draft.
        contended: locks with contended waits, and their waiters.
    """
    cpus = snapshot.process.cpus
    runnable = [thread for thread in snapshot.threads if _computes(thread)]
    waiters = sum(len(threads) for _, threads in contended)
    if cpus and waiters and len(runnable) > cpus * _MAX_RUNNABLE:
        yield Oversubscribed(
            lock=0,
            tids=tuple(sorted(thread.tid for thread in runnable)),
            runnable=len(runnable),
            cpus=cpus,
            cpus_used=sum(thread.cpu_share for thread in runnable),
            waiters=waiters,
        )


def _computes(thread: Thread) -> bool:
    """Return whether a thread wants a CPU now and has used a CPU in the last interval."""
    return (
        thread.state in (ThreadState.RUNNING, ThreadState.RUNNABLE)
        and thread.cpu_share > 0
        and thread.wait_share + thread.idle_share < _MAX_WAITED
    )
