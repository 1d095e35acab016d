"""Looks at the machine twice, with a scan of the processes on the way in between."""

from __future__ import annotations

import time
from collections.abc import Sequence

from locktop.collector.extensions.why import lock_waits, wait_chains
from locktop.collector.extensions.why.model import WhyAnswer
from locktop.collector.extensions.why.wait_chains import Knots, Look
from locktop.collector.linux import syscalls
from locktop.collector.linux.target import find_process

#: Seconds between the looks, which must show the same waits.
_BETWEEN_S = 0.25
#: Processes of which the locks are read: the nearest ones.
_MAX_SCANS = 24


def why(pids: Sequence[int]) -> WhyAnswer:
    """Return why these processes wait.

    Raises:
        LocktopError: there is no such process.
    """
    for pid in pids:
        find_process(pid)
    begin = time.monotonic()
    calls = Look(pids, {})
    scans = {pid: lock_waits.scan(pid) for pid in _with_lock_waits(calls)[:_MAX_SCANS]}
    first = Look(pids, scans)
    time.sleep(_BETWEEN_S)
    second = Look(pids, scans)
    knots = Knots(first, second)
    chains = tuple(wait_chains.chain(pid, first, knots) for pid in pids)
    return WhyAnswer(
        chains=chains,
        processes=first.host.processes,
        hidden=tuple(sorted(first.host.hidden | first.host.files.hidden)),
        looked_s=time.monotonic() - begin,
    )


def _with_lock_waits(look: Look) -> list[int]:
    """Return the processes of a look whose threads may wait for locks, the nearest first."""
    waiting = {
        thread.pid
        for thread in look.threads.values()
        if thread.call is not None and syscalls.is_futex(thread.call.number)
    }
    return [pid for pid in look.reached if pid in waiting]
