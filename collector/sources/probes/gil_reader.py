"""Python's global interpreter lock (GIL) in the memory of one process, read again and again."""

from __future__ import annotations

from collections import Counter

from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.symbols.python import gil
from locktop.collector.symbols.python.gil import GilReading

#: Readings of an address that turns out to be no GIL. A GIL may be free at a reading.
_MAX_TRIES = 20
_MAX_ADDRESSES = 1024


class GilReader:
    """Reads who has the GIL, and knows the addresses at which a GIL was."""

    def __init__(self, pid: int, locks: PythonLockReader) -> None:
        self._pid = pid
        self._locks = locks
        self._tries: Counter[int] = Counter()  # by address
        #: Addresses of the conditions at which threads wait for a GIL, as waits have them.
        self.conditions: set[int] = set()

    def read(self, address: int) -> GilReading | None:
        """Return the GIL at an address; None if no thread has it, or it is no GIL."""
        if address not in self.conditions:
            if len(self._tries) > _MAX_ADDRESSES:
                self._tries.clear()
            self._tries[address] += 1
            if self._tries[address] > _MAX_TRIES or self._locks.locks() is None:
                return None
        if self._locks.state is None:
            return None
        reading = gil.read(self._pid, self._locks.state, address)
        if reading is not None:
            self.conditions.add(address)
        return reading
