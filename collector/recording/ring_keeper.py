"""Moves the ring records of a process to its memory or to a stream, as far as the cost allows."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Protocol

from locktop.collector.errors import LocktopError
from locktop.collector.shm import slot_batch
from locktop.collector.shm.ring_drain import Drained, RingDrain
from locktop.collector.shm.slot_batch import SlotBatch

#: The share of a CPU that the records may take, and seconds of it that may be spent in advance.
_CPU_SHARE, _ADVANCE_S = 0.01, 10.0
#: Seconds of ring records in one batch, at most. Each scan of a screen ends one sooner.
_BATCH_S = 1.0
#: The longest pause between two copies of the rings, seconds. Each copy of 500 threads takes a
#: thousandth of a CPU's second, and long waits stay in the file anyway.
_LONGEST_PAUSE_S = 1.0
#: The shortest pause, seconds: many small batches would take more bytes.
_LEAST_PAUSE_S = 0.25
#: Seconds that ``flush`` and ``close`` wait for the thread.
_PATIENCE_S = 2.0
#: Seconds that a scan waits for the records until then.
_CATCH_UP_S = 0.1
#: Long waits that nobody took, in bytes; the oldest are left out.
MAX_LONG_BYTES = 1000 * 64


class TakesSlots(Protocol):
    """A destination of ring records, such as a History."""

    def add_slots(self, slots: SlotBatch) -> None:
        """Add the ring records since the batch before, with the number of lost ones."""
        ...


class RingKeeper:
    """Has a thread that takes the records.

    A busy process makes more records than the CPU share allows. Then the thread pauses, the process
    overwrites records, and the next batch counts these as lost.
    """

    def __init__(self, drain: RingDrain, to: TakesSlots, cpu_share: float = _CPU_SHARE) -> None:
        """Args:
        drain: the records; the keeper closes the drain.
        to: where the records go.
        cpu_share: the part of a CPU that this may cost.
        """
        self._drain = drain
        self._cpu_share = cpu_share
        self._to = to
        self._changed = threading.Condition()  # of the fields below
        self._long_waits: SlotBatch | None = None
        self._fault: Exception | None = None
        self._batches = 0  # that were handed over
        self._is_hurried = self._is_pausing = self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="ring records", daemon=True)
        self._thread.start()

    def take_long_waits(self) -> SlotBatch | None:
        """Return the records of long waits since the last call.

        Raises:
            Exception: the fault that ended the thread.
        """
        if self._fault is not None:
            raise self._fault
        with self._changed:
            taken, self._long_waits = self._long_waits, None
            return taken

    def catch_up(self) -> None:
        """Flush, unless the thread pauses because of the cost."""
        if not self._is_pausing:
            self._wait_for_batches(1, _CATCH_UP_S)

    def flush(self) -> None:
        """Return when the destination has the records that are there now."""
        # The batch that is being taken may have begun before.
        self._wait_for_batches(2, _PATIENCE_S)

    def _wait_for_batches(self, count: int, within_s: float) -> None:
        with self._changed:
            wanted = self._batches + count
            until = time.monotonic() + within_s
            while self._batches < wanted and self._thread.is_alive():
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return
                self._hurry()
                self._changed.wait(min(left_s, 0.01))

    def close(self) -> None:
        """Take no more records."""
        with self._changed:
            self._is_stopped = True
            self._hurry()
        until = time.monotonic() + _PATIENCE_S
        while self._thread.is_alive() and time.monotonic() < until:
            self._drain.hurry()  # the thread may just have begun with a batch
            self._thread.join(0.01)

    def _hurry(self) -> None:
        self._is_hurried = True
        self._drain.hurry()
        self._changed.notify_all()

    def _run(self) -> None:
        paid_at = time.monotonic() - _ADVANCE_S  # until then the share covers the cost
        has_paused = False
        try:
            while not self._is_stopped:
                began_s, now = time.thread_time(), time.monotonic()
                # After a pause the rings alone are taken: they have the newest records.
                self._add(self._take(0.0 if has_paused else _BATCH_S))
                used_s = time.thread_time() - began_s
                paid_at = max(paid_at, now - _ADVANCE_S) + used_s / self._cpu_share
                has_paused = paid_at > time.monotonic()
                self._pause(max(paid_at, now + _LEAST_PAUSE_S) if has_paused else 0.0)
        except Exception as error:
            self._fault = error
        finally:
            self._drain.close()

    def _take(self, within_s: float) -> Drained:
        while True:
            # The next scan reports the damage of a file, and another program may follow.
            with contextlib.suppress(LocktopError):
                return self._drain.take(within_s, _LONGEST_PAUSE_S)

    def _add(self, drained: Drained) -> None:
        if not drained.slots.is_empty:
            self._to.add_slots(drained.slots)
        with self._changed:
            self._batches += 1
            self._changed.notify_all()
            if drained.long_waits.records:
                self._long_waits = slot_batch.join(
                    self._long_waits, drained.long_waits, MAX_LONG_BYTES
                )

    def _pause(self, until: float) -> None:
        with self._changed:
            self._is_hurried = False
            self._is_pausing = until > time.monotonic()
            while not (self._is_hurried or self._is_stopped):
                left_s = until - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(left_s)
            self._is_pausing = False
