"""Waits of which only the names of functions tell whether they are for locks."""

from __future__ import annotations

from functools import partial

from locktop.collector.linux import process_memory
from locktop.collector.model import NAMED_BY_STACK_KINDS, Kind, Snapshot
from locktop.collector.render.words import amid_work
from locktop.collector.sources.probes.lock_words import may_be_in_shared_mutex


def needs_names(pid: int, snapshot: Snapshot) -> bool:
    """Return whether a thread has such a wait, or one for a lock whose holder only names show.

    Args:
        pid: the process.
        snapshot: a scan of it that did not wait for names.
    """
    waits = [thread.waiting_for for thread in snapshot.threads if thread.waiting_for is not None]
    if snapshot.unobserved_waiters or any(
        wait.kind in NAMED_BY_STACK_KINDS and (wait.idle or not wait.holders) for wait in waits
    ):
        return True
    if amid_work.waiters(snapshot):
        return True
    addresses = {lock.id: lock.address for lock in snapshot.locks}
    conditions = {addresses.get(wait.lock, 0) for wait in waits if wait.kind is Kind.COND}
    read = partial(process_memory.read, pid)
    return any(may_be_in_shared_mutex(address, read) for address in conditions)


def lacks_stacks(snapshot: Snapshot) -> bool:
    """Return whether a thread waits for a condition, and no scan has read its stack yet.

    The depth of the stack tells whether names are needed.
    """
    waits = (thread.waiting_for for thread in snapshot.threads if thread.alive)
    return any(wait is not None and wait.kind is Kind.COND and not wait.stack for wait in waits)
