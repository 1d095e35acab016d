"""Reads the names that the program gave its locks (locktop.h) from its shared memory."""

from __future__ import annotations

from locktop.collector import native
from locktop.collector.sanitize import clean
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray, SharedMemory

_ADDRESS = (1 << native.lib.LT_KIND_SHIFT) - 1


class ProgramLockNames:
    """Names by lock key. ``version`` grows with each change of a name."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._entries = GrowingArray(memory, layout.NAMES_AT, layout.NAME.size)
        self._names: dict[int, str] = {}
        self._changed = 0
        self.version = 0

    def refresh(self) -> None:
        """Read the names again if one has changed. Raises LocktopError for a damaged file."""
        raw = self._memory.read(layout.NAMES_CHANGED_AT, 4)
        changed = int.from_bytes(raw, layout.BYTE_ORDER)
        if changed == self._changed:
            return
        self._entries.refresh()
        data = self._entries.copy()
        names = {}
        for start in range(0, len(data), layout.NAME.size):
            entry = layout.NAME.unpack(data, start)
            if entry.seq & 1:  # the target changes the entry: the next scan reads the rest
                changed = self._changed
                former = self._names.get(entry.key)
                if former:
                    names[entry.key] = former
            elif text := entry.text.partition(b"\0")[0]:
                names[entry.key] = clean(text)
        self._names, self._changed = names, changed
        self.version += 1

    def name(self, key: int) -> str:
        """Return the name of a lock, "" if the program gave none.

        ``key``: the lock's address, with enum lt_kind in the top byte.
        """
        return self._names.get(key) or self._names.get(key & _ADDRESS, "")
