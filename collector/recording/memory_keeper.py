"""Keeps the scans of a live process in a History, as often as their cost allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.model import NotableKind, Snapshot
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_file import write_recording
from locktop.collector.recording.moments import EarlierWaits
from locktop.collector.recording.notable_moments import NotableMoments
from locktop.collector.recording.ring_keeper import MAX_LONG_BYTES, RingKeeper
from locktop.collector.recording.scan_time import scan_time_ns
from locktop.collector.shm import slot_batch
from locktop.collector.shm.ring_drain import LONG_WAIT_S, RingDrain
from locktop.collector.shm.slot_batch import SlotBatch

#: The share of a CPU that snapshots may take; and with moments that are worth a jump.
_CPU_SHARE, _MAX_CPU_SHARE = 0.01, 0.05
#: Levels at which the library writes no record of a wait.
_WITHOUT_RECORDS = ("dormant", "counting")
#: Batches of ring records from before the first scan.
_FIRST_CALLS = 1


class HasRings(Protocol):
    """The part of a Source that has ring records."""

    def drain(self, first_calls: int = ...) -> RingDrain | None: ...


class MemoryKeeper:
    """Give it each scan. One thread uses it, the thread that scans."""

    def __init__(
        self,
        source: HasRings | None,
        history: History,
        wall_ns: Callable[[], int] = time.time_ns,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        """Args:
        source: the process; its ring records are kept from the first scan on. None: a stream,
            whose ring records come with the snapshots.
        history: where the scans go.
        wall_ns: the time, nanoseconds since 1970.
        cpu_s: the CPU time of this thread, seconds.
        """
        self._source = source
        self._history = history
        self._wall_ns = wall_ns
        self._cpu_s = cpu_s
        self._moments = NotableMoments()
        self._rings: RingKeeper | None = None
        self._long_waits: SlotBatch | None = None  # of a stream
        if source is None:
            history.earlier_waits = EarlierWaits.UNRECORDED
        self._last_ns = 0
        # When the next snapshot may be added: any, one with a moment, one with a deadlock.
        self._due_ns = self._urgent_ns = self._deadlock_ns = 0

    def keep(
        self, snapshot: Snapshot, whole: Snapshot | None = None, taken_ns: int | None = None
    ) -> None:
        """Look for moments in a scan, and add the scan unless that is too early.

        Args:
            snapshot: the scan, as the screen shows it.
            whole: the scan with the figures since the start; None: ``snapshot`` has these.
            taken_ns: when it was taken, nanoseconds since 1970; None: the scan tells.
        """
        began_s = self._cpu_s()
        at_ns = scan_time_ns(snapshot, self._wall_ns()) if taken_ns is None else taken_ns
        time_ns = self._last_ns = max(at_ns, self._last_ns + 1)
        if self._source is not None:
            self._begin_rings(self._source, records=snapshot.level not in _WITHOUT_RECORDS)
        if self._rings is not None:
            # A time line ends at the newest snapshot, and is to have the waits until then.
            self._rings.flush() if snapshot.ended else self._rings.catch_up()
        long_waits, self._long_waits = self._long_waits, None
        if self._rings is not None:
            long_waits = self._rings.take_long_waits()
        notables = self._moments.find(whole or snapshot, time_ns, long_waits)
        kinds = {notable.kind for notable in notables} - {NotableKind.MARK}
        if time_ns < self._first_ns(kinds) and not snapshot.ended:
            self._history.scanned(snapshot, time_ns)
            for notable in notables:
                self._history.add_notable(notable)
            return
        size = self._history.add(snapshot, time_ns, None, notables)
        cost_s = self._cpu_s() - began_s
        pause_s = max(cost_s / _CPU_SHARE, size / self._history.snapshot_rate)
        self._due_ns = time_ns + round(pause_s * 1e9)
        self._urgent_ns = time_ns + round(cost_s / _MAX_CPU_SHARE * 1e9)
        if NotableKind.DEADLOCK in kinds:
            self._deadlock_ns = self._urgent_ns

    def _first_ns(self, kinds: set[NotableKind]) -> int:
        """Return when a snapshot with such moments may be added."""
        if NotableKind.DEADLOCK in kinds:  # few, and a jump to one is to show it
            return self._deadlock_ns
        return self._urgent_ns if kinds else self._due_ns

    def add_slots(self, slots: SlotBatch) -> None:
        """Add ring records of a stream, before the snapshot that came after them."""
        self._history.add_slots(slots)
        long_waits = slot_batch.long_waits(slots, LONG_WAIT_S)
        if long_waits.records:
            self._long_waits = slot_batch.join(self._long_waits, long_waits, MAX_LONG_BYTES)

    def save(self, path: Path) -> None:
        """Write all that is kept to a new file. Raises NotWrittenError."""
        self.flush()
        write_recording(self._history, path)

    def flush(self) -> None:
        """Wait until the memory has the ring records of now."""
        if self._rings is not None:
            self._rings.flush()

    def close(self) -> None:
        """Keep no more ring records. The memory stays."""
        if self._rings is not None:
            self._rings.close()

    def _begin_rings(self, source: HasRings, records: bool) -> None:
        """``records``: whether the process records waits."""
        self._source = None
        # The rings of many threads take long to empty, and the cost is bounded.
        drain = source.drain(_FIRST_CALLS)
        if drain is None or not records:
            self._history.earlier_waits = EarlierWaits.UNRECORDED
        elif drain.dropped:
            self._history.earlier_waits = EarlierWaits.OVERWRITTEN
        if drain is not None:
            self._rings = RingKeeper(drain, self._history)
            # A long wait from before is to be in the first snapshot.
            self._rings.flush()


class GuardedMemory:
    """A memory whose fault ends the memory alone, and is a note on the screen.

    Give it each scan. One thread at a time uses it. The methods raise nothing.
    """

    def __init__(self, keeper: MemoryKeeper) -> None:
        """``keeper``: what may fail, and is closed then."""
        self._keeper: MemoryKeeper | None = keeper
        self._fault = ""  # why nothing more is kept

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with a note if nothing more is kept."""
        if not self._fault:
            return snapshot
        return replace(snapshot, notes=(*snapshot.notes, self._fault))

    def keep(
        self, snapshot: Snapshot, whole: Snapshot | None = None, taken_ns: int | None = None
    ) -> None:
        self._guard(lambda keeper: keeper.keep(snapshot, whole, taken_ns))

    def keep_records(self, batches: Iterable[SlotBatch]) -> None:
        """Add the ring records of a stream; see MemoryKeeper.add_slots."""

        def add(keeper: MemoryKeeper) -> None:
            for batch in batches:
                keeper.add_slots(batch)

        self._guard(add)

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()

    def _guard(self, use: Callable[[MemoryKeeper], None]) -> None:
        keeper = self._keeper
        if keeper is None:
            return
        try:
            use(keeper)
        # A fault of the memory must end neither the scans nor a stream.
        except Exception as error:
            self._keeper = None
            self._fault = f"the past is kept no more: {type(error).__name__}: {error}"
            keeper.close()
