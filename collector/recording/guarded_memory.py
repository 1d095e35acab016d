"""A memory whose fault ends the memory alone, and is a note on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from locktop.collector.model import Snapshot
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.shm.slot_batch import SlotBatch


class GuardedMemory:
    """Give it each scan. One thread at a time uses it. The methods raise nothing."""

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
        self._guarded(lambda keeper: keeper.keep(snapshot, whole, taken_ns))

    def keep_records(self, batches: Iterable[SlotBatch]) -> None:
        """Add the ring records of a stream; see MemoryKeeper.add_slots."""

        def add(keeper: MemoryKeeper) -> None:
            for batch in batches:
                keeper.add_slots(batch)

        self._guarded(add)

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()

    def _guarded(self, use: Callable[[MemoryKeeper], None]) -> None:
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
