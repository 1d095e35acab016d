"""Finds a plain reason why a scan shows no deadlock, without the wait-for graph.

In a crowd, thousands of threads wait for mutexes, and rarely does one of them hold a lock. The
graph of all these waits takes much longer than one pass over the threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import Kind, Thread


def can_all_go_on(threads: Sequence[Thread]) -> bool:
    """Return whether no thread that others may wait for waits itself: then there is no deadlock.

    A wait for a mutex needs the thread that lists the mutex, or an owner that has ended. Waits for
    other objects may need other threads, so the result is False if there is one.

    Args:
        threads: All threads of the process. No peer process has further ones.
    """
    living = {thread.tid for thread in threads if thread.alive}
    for thread in threads:
        wait = thread.waiting_for
        if not thread.alive:
            if thread.holds:
                return False
        # A wait with a time limit ends by itself. The id 0 stands for many locks.
        elif wait is not None and not wait.timed and wait.lock:
            owner_lives = not wait.holder_seen or wait.holder_seen in living
            if wait.kind is not Kind.MUTEX or thread.holds or not owner_lives:
                return False
    return True
