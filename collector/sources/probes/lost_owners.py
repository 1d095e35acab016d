"""Owners of mutexes in shared memory that no longer exist in any process.

Such a mutex is never released. The word of a mutex names its owner until the release (glibc,
nptl/pthread_mutex_unlock.c). A release by another thread would wake the waiters.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence

from locktop.collector.linux import process_memory, procfs
from locktop.collector.model import Kind, Lock, Thread
from locktop.collector.sources.probes import shared_memory
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.memory_map import AddressSpace

#: lock, count and owner of a pthread_mutex_t (struct_mutex.h).
_MUTEX = struct.Struct("=III")
_TAKEN = 2  # and threads wait


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
        wanted = {
            wait.lock
            for thread in threads
            if (wait := thread.waiting_for) is not None
            and wait.pshared
            and wait.kind is Kind.MUTEX
            and not wait.timed
        }
        addresses = [lock.address for lock in locks if lock.id in wanted and not lock.freed_at_exit]
        if not addresses or not self._same_ids:
            return frozenset()
        try:
            return frozenset(self._lost(addresses))
        except (OSError, ValueError):
            return frozenset()

    def _lost(self, addresses: Sequence[int]) -> Iterable[int]:
        owners = {}
        read = process_memory.read_many(self._pid, [(one, _MUTEX.size) for one in addresses])
        for address, data in zip(addresses, read, strict=True):
            if len(data) == _MUTEX.size:
                word, _, owner = _MUTEX.unpack(data)
                if word == _TAKEN and owner and not os.path.exists(f"/proc/{owner}"):
                    owners[address] = owner
        if not owners or (procfs.hides_others() and os.geteuid() != 0):
            return
        space = AddressSpace(memory_map.parse(procfs.maps(self._pid)))
        for address, owner in owners.items():
            mapping = space.find(address)
            if mapping is None or not mapping.shared:
                continue
            if shared_memory.are_in_one_namespace(self._pid, mapping):
                yield owner
