"""Owners of mutexes in shared memory that no longer exist in any process.

Such a mutex is never released. The word of a mutex names its owner until the release (glibc,
nptl/pthread_mutex_unlock.c). A release by another thread would wake the waiters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from locktop.collector.linux import procfs
from locktop.collector.model import Lock, Thread
from locktop.collector.sources.probes import shared_memory, shared_mutexes
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.memory_map import AddressSpace


class LostOwners:
    """Finds the lost owners of the locks that threads of one process wait for."""

    def __init__(self, pid: int, own_pid: int) -> None:
        self._pid = pid
        self._same_ids = pid == own_pid

    def find(self, threads: Iterable[Thread], locks: Iterable[Lock]) -> frozenset[int]:
        """Return the tids of the owners that no process has.

        Args:
            threads: of the process.
            locks: of the process.
        """
        mutexes = shared_mutexes.waited_for(threads, locks, lambda wait: not wait.timed)
        addresses = [lock.address for lock in mutexes if not lock.freed_at_exit]
        if not addresses or not self._same_ids:
            return frozenset()
        try:
            return frozenset(self._lost_addresses(addresses))
        except (OSError, ValueError):
            return frozenset()

    def _lost_addresses(self, addresses: Sequence[int]) -> Iterable[int]:
        owners = {
            address: word.owner
            for address, word in shared_mutexes.words(self._pid, addresses).items()
            if word.is_contended and word.owner and not os.path.exists(f"/proc/{word.owner}")
        }
        if not owners or (procfs.hides_others() and os.geteuid() != 0):
            return
        space = AddressSpace(memory_map.parse(procfs.maps(self._pid)))
        for address, owner in owners.items():
            mapping = space.find(address)
            if mapping is None or not mapping.shared:
                continue
            if shared_memory.are_in_one_namespace(self._pid, mapping):
                yield owner
