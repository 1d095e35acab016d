"""Reads lock misuses, violations of the rules of pthreads, from the shared memory."""

from __future__ import annotations

from locktop.collector.model import Misuse, MisuseKind
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.segment import GrowingArray, SharedMemory

_KINDS = {
    lib.LT_MISUSE_RELEASED_OTHERS: MisuseKind.RELEASED_OTHERS,
    lib.LT_MISUSE_RELEASED_FREE: MisuseKind.RELEASED_FREE,
    lib.LT_MISUSE_TAKEN_AGAIN: MisuseKind.TAKEN_AGAIN,
    lib.LT_MISUSE_ENDED_HELD: MisuseKind.DESTROYED_HELD,
    lib.LT_MISUSE_ENDED_WAITED: MisuseKind.DESTROYED_WAITED,
    lib.LT_MISUSE_WAITED_UNHELD: MisuseKind.WAITED_UNHELD,
    lib.LT_MISUSE_TWO_MUTEXES: MisuseKind.TWO_MUTEXES,
    lib.LT_MISUSE_KEPT: MisuseKind.KEPT_AT_END,
}


class MisuseLog:
    """The misuses in one file, read again when the target added some."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._entries = GrowingArray(memory, layout.MISUSES_AT, layout.MISUSE.size)
        self._changed = 0
        self._misuses: list[layout.MisuseRecord] = []

    def refresh(self) -> None:
        """Read the misuses again if there are new ones. Raises LocktopError for a damaged file."""
        changed = int.from_bytes(self._memory.read(layout.MISUSES_CHANGED_AT, 8), layout.BYTE_ORDER)
        if changed != self._changed:
            self._changed = changed
            self._entries.refresh()
            data = self._entries.copy()
            entries = [
                layout.MISUSE.unpack(data, start)
                for start in range(0, len(data), layout.MISUSE.size)
            ]
            self._misuses = _merge(entries)

    @property
    def locks(self) -> frozenset[int]:
        """The ids of the locks. Such a lock may have no other figures."""
        return frozenset(entry.lock for entry in self._misuses)

    def misuses(self, now: int) -> tuple[Misuse, ...]:
        """Return the misuses, the oldest first. ``now``: reading of the target's clock, ticks."""
        return tuple(
            Misuse(
                kind=_KINDS[entry.kind],
                lock=entry.lock,
                tid=entry.tid,
                other=entry.other,
                stack=entry.stack,
                count=entry.count,
                ago_s=self._clock.seconds(now - entry.first),
            )
            for entry in self._misuses
        )


def _merge(entries: list[layout.MisuseRecord]) -> list[layout.MisuseRecord]:
    """Return one entry for each misuse: two threads may have made an entry each for the same."""
    merged: dict[tuple[int, int, int], layout.MisuseRecord] = {}
    for entry in entries:
        if entry.kind not in _KINDS or not entry.count:
            continue
        key = entry.kind, entry.lock, entry.stack
        first = merged.get(key, entry._replace(count=0))
        merged[key] = first._replace(count=first.count + entry.count)
    return sorted(merged.values(), key=lambda entry: entry.first)
