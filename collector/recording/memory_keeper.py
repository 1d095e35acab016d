"""Keeps the scans of a live process in a History, as often as their cost allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.model import NotableKind, Snapshot
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_file import write_recording
from locktop.collector.recording.notable_moments import NotableMoments
from locktop.collector.shm.slot_batch import SlotBatch

#: The share of a CPU that keeping may take; and with moments that are worth a jump.
_CPU_SHARE, _MAX_CPU_SHARE = 0.01, 0.05
#: Raw records that wait for the next snapshot, in bytes; older ones are left out.
_MAX_WAITING = 16 << 20


class RingRecords(Protocol):
    """The part of a Source that has ring records."""

    def keep_slots(self) -> None:
        """See Source."""

    def take_slots(self) -> SlotBatch | None:
        """See Source."""


class NoRingRecords:
    """The ring records of a stream, which has none."""

    def keep_slots(self) -> None:
        """See Source."""

    def take_slots(self) -> SlotBatch | None:
        """See Source."""
        return None


class MemoryKeeper:
    """Give it each scan. One thread uses it, the thread that scans."""

    def __init__(
        self,
        source: RingRecords,
        history: History,
        wall_ns: Callable[[], int] = time.time_ns,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        """Args:
        source: the process; its scans keep their ring records from now on.
        history: where the scans go.
        wall_ns: the time, nanoseconds since 1970.
        cpu_s: the CPU time of this thread, seconds.
        """
        self._source = source
        self._history = history
        self._wall_ns = wall_ns
        self._cpu_s = cpu_s
        self._moments = NotableMoments()
        self._slots: list[SlotBatch] = []  # since the last snapshot in the memory
        self._last_ns = 0
        self._due_ns = self._urgent_ns = 0  # when the next snapshot may be added
        source.keep_slots()

    def keep(self, snapshot: Snapshot) -> None:
        """Look for moments in a scan, and add the scan unless that is too early."""
        began_s = self._cpu_s()
        time_ns = self._last_ns = max(self._wall_ns(), self._last_ns + 1)
        slots = self._source.take_slots()
        found = self._moments.find(snapshot, time_ns, slots)
        if slots is not None and slots.records:
            self._slots.append(slots)
            while sum(len(one.records) for one in self._slots) > _MAX_WAITING:
                del self._slots[0]
        is_urgent = any(one.kind is not NotableKind.MARK for one in found)
        if time_ns < (self._urgent_ns if is_urgent else self._due_ns) and not snapshot.ended:
            for one in found:
                self._history.add_notable(one)
            return
        size = self._history.add(snapshot, time_ns, _joined(self._slots), found)
        self._slots = []
        cost_s = self._cpu_s() - began_s
        pause_s = max(cost_s / _CPU_SHARE, size / self._history.snapshot_rate)
        self._due_ns = time_ns + round(pause_s * 1e9)
        self._urgent_ns = time_ns + round(cost_s / _MAX_CPU_SHARE * 1e9)

    def save(self, path: Path) -> None:
        """Write all that is kept to a new file. Raises NotWrittenError."""
        write_recording(self._history, path)


def _joined(batches: list[SlotBatch]) -> SlotBatch | None:
    """Return the records of all batches, which are of one clock, with the newest pair of times."""
    if len(batches) < 2:
        return batches[0] if batches else None
    return replace(
        batches[-1],
        lost=sum(one.lost for one in batches),
        records=b"".join([one.records for one in batches]),
    )
