"""The memory of a live screen: the last minutes, in a bounded number of bytes."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import MarkRecord, Notable, SignalRecord, Snapshot, WaitRecord
from locktop.collector.recording import past_events, slot_store, snapshot_payload
from locktop.collector.recording.frame_format import FrameType
from locktop.collector.recording.later_names import LaterNames, TimedScan
from locktop.collector.recording.moments import EarlierWaits
from locktop.collector.recording.slot_store import PackedSlots, SlotStore
from locktop.collector.recording.snapshot_chain import ChainPacker, Link, unpack_last
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: The default bounds: bytes, and seconds.
MAX_BYTES, SPAN_S = 64 << 20, 900.0
#: The least bytes: a whole snapshot of a large process must fit.
LEAST_BYTES = 1 << 20
_MAX_NOTABLES = 1000
_MAX_LOSSES = 10_000
#: Records that are read at once, as of a recording, and the latest time that one may have.
MAX_RECORDS, _MAX_NS = 1 << 22, 1 << 62
#: The part of the bytes that ring records may take.
_SLOT_SHARE = 0.3
#: Bytes of Python objects beside each packed part.
_EACH = 300


class _Chain(Struct):
    """A whole snapshot and its changes."""

    times_ns: list[int]
    links: list[Link]
    size: int = 0  # bytes


class Loss(Struct, frozen=True):
    """Ring records that the memory does not have, of one span of time."""

    from_ns: int
    to_ns: int
    count: int

    def count_in(self, from_ns: int, to_ns: int) -> int:
        """Return how many lie in a span by its share; at least one if the spans overlap."""
        common_ns = min(to_ns, self.to_ns) - max(from_ns, self.from_ns)
        if common_ns <= 0 or self.count <= 0:
            return 0
        return max(1, self.count * common_ns // max(1, self.to_ns - self.from_ns))


class Kept(Struct, frozen=True):
    """All that a memory has, packed."""

    snapshots: tuple[tuple[int, Link], ...]  # with their times, the oldest first
    slots: tuple[PackedSlots, ...]
    losses: tuple[Loss, ...]
    notables: tuple[Notable, ...]


class History:
    """Keeps snapshots, ring records and notable moments. See Moments for the reading methods.

    One thread adds snapshots, one adds ring records, and others read. The oldest chain goes first
    when the bytes or the seconds are exceeded. The newest chain always stays.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, span_s: float = SPAN_S) -> None:
        """Args:
        max_bytes: the most bytes that the packed parts take.
        span_s: how far back the memory goes, seconds.
        """
        self._max_bytes = max(max_bytes, LEAST_BYTES)
        self._span_ns = round(span_s * 1e9)
        self._packer = ChainPacker()
        self._chains: deque[_Chain] = deque()
        self._slots = SlotStore()
        self._losses: deque[Loss] = deque(maxlen=_MAX_LOSSES)
        self._slots_ns: int | None = None  # the time of the newest batch; None: there was none
        self._notables: deque[Notable] = deque(maxlen=_MAX_NOTABLES)
        #: The newest scan, which may not be among the snapshots.
        self.newest: TimedScan | None = None
        self._names = LaterNames(self.times_ns, self._kept_snapshot, lambda: self.newest)
        #: See KnowsEarlierWaits.
        self.earlier_waits = EarlierWaits.KNOWN
        #: Gets each mark of the user, as a recording beside the screen.
        self.mark_listener: Callable[[Notable], None] | None = None
        self._size = 0  # of the snapshots
        self._lock = threading.Lock()
        self._last: tuple[int, bytes] | None = None  # the payload that was read last, and its time

    @property
    def size(self) -> int:
        """The bytes that the packed parts take."""
        return self._size + self._slots.size

    @property
    def snapshot_rate(self) -> float:
        """The bytes a second for which snapshots of the whole span fit."""
        return self._max_bytes * (1 - _SLOT_SHARE) / (self._span_ns / 1e9)

    def add(
        self,
        snapshot: Snapshot,
        time_ns: int,
        slots: SlotBatch | None = None,
        notables: Iterable[Notable] = (),
    ) -> int:
        """Add one scan; return the bytes that it takes.

        Args:
            snapshot: the scan.
            time_ns: when it was taken, nanoseconds since 1970; later than the scan before.
            slots: the ring records since the scan before; see add_slots.
            notables: the notable moments since the scan before.
        """
        self.scanned(snapshot, time_ns)
        events = past_events.newest_of_each(snapshot.events)
        link = self._packer.link(snapshot_payload.encode(replace(snapshot, events=events)))
        size = len(link.packed) + _EACH
        with self._lock:
            if link.type is FrameType.KEY:
                self._chains.append(_Chain([], []))
            chain = self._chains[-1]
            chain.times_ns.append(time_ns)
            chain.links.append(link)
            chain.size += size
            self._size += size
            self._notables.extend(notables)
            self._forget(time_ns - self._span_ns)
        if slots is not None:
            self.add_slots(slots)
        return size

    def add_slots(self, slots: SlotBatch) -> None:
        """Add the ring records since the batch before, with the number of lost ones."""
        dense = slot_store.dense(slots) if slots.records or slots.marks else None
        with self._lock:
            if slots.lost:
                begin_ns = self._slots_ns if self._slots_ns is not None else slots.time_ns - 1
                self._losses.append(Loss(begin_ns, slots.time_ns, slots.lost))
            self._slots_ns = slots.time_ns
            if dense is not None:
                self._slots.add(dense)
                self._forget_slots()

    def add_notable(self, notable: Notable) -> None:
        """Add a moment that the process showed."""
        with self._lock:
            self._notables.append(notable)

    def add_mark(self, mark: Notable) -> None:
        """Add a mark of the user; see ``mark_listener``."""
        self.add_notable(mark)
        if self.mark_listener is not None:
            self.mark_listener(mark)

    def _forget(self, oldest_ns: int) -> None:
        while len(self._chains) > 1 and (
            self.size > self._max_bytes or self._chains[1].times_ns[0] < oldest_ns
        ):
            self._size -= self._chains.popleft().size
            first_ns = self._chains[0].times_ns[0]
            self._slots.forget_before(first_ns)
            while self._losses and self._losses[0].to_ns < first_ns:
                self._losses.popleft()
            while self._notables and self._notables[0].time_ns < first_ns:
                self._notables.popleft()
        self._forget_slots()

    def _forget_slots(self) -> None:
        # A program with very many records must not drive out the snapshots.
        most = round(self._max_bytes * _SLOT_SHARE)
        while len(self._slots) > 1 and (self._slots.size > most or self.size > self._max_bytes):
            gone = self._slots.forget_oldest()
            first_ns = min(gone.first_ns or gone.time_ns - 1, gone.time_ns - 1)
            self._losses.append(Loss(first_ns, gone.time_ns, gone.count))

    def kept(self) -> Kept:
        """Return all that is kept now, for a file."""
        with self._lock:
            snapshots = tuple(
                pair
                for chain in self._chains
                for pair in zip(chain.times_ns, chain.links, strict=True)
            )
            parts = self._slots.all_parts()
            losses, notables = tuple(self._losses), tuple(self._notables)
        slots = tuple(map(slot_store.packed_alone, slot_store.unpacked(parts)))
        return Kept(snapshots=snapshots, slots=slots, losses=losses, notables=notables)

    def times_ns(self) -> Sequence[int]:
        with self._lock:
            return [time_ns for chain in self._chains for time_ns in chain.times_ns]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        return self._names.apply(self._kept_snapshot(time_ns), time_ns)

    def _kept_snapshot(self, time_ns: int) -> Snapshot:
        with self._lock:
            if not self._chains:
                raise LocktopError("there is no snapshot yet")
            begins = [chain.times_ns[0] for chain in self._chains]
            chain = self._chains[max(0, bisect_right(begins, time_ns) - 1)]
            number = max(0, bisect_right(chain.times_ns, time_ns) - 1)
            times, links = chain.times_ns[: number + 1], chain.links[: number + 1]
        return snapshot_payload.decode_own(self._payload(times, links))

    def scanned(self, snapshot: Snapshot, time_ns: int) -> None:
        """Take the newest scan, kept or not: it knows names that earlier snapshots lack."""
        self.newest = TimedScan(time_ns, snapshot)

    def _payload(self, times_ns: list[int], links: list[Link]) -> bytes:
        """Unpack the last of the links, from the payload that was read last if that is before."""
        first, before, last = 0, None, self._last
        if last is not None and last[0] in times_ns:
            first, before = times_ns.index(last[0]) + 1, last[1]
        payload = unpack_last(links[first:], before) if links[first:] else before
        assert payload is not None
        self._last = times_ns[-1], payload
        return payload

    def notables(self) -> Sequence[Notable]:
        with self._lock:
            notables = sorted(self._notables, key=lambda notable: notable.time_ns)
        return self._names.reword(notables)

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        """See Moments. Raises TooManyRecordsError, too."""
        records: list[WaitRecord] = []
        for batch in self.batches(from_ns, to_ns):
            records += [
                record
                for record in slot_batch.decode_span(batch, from_ns, to_ns)
                # The records of a stream may be forged.
                if record.began_ns >= 0 and record.end_ns <= _MAX_NS
            ]
            if len(records) > MAX_RECORDS:
                from locktop.collector.recording.time_lines import TooManyRecordsError

                raise TooManyRecordsError((to_ns - from_ns) // 8, MAX_RECORDS)
        return sorted(records, key=lambda record: record.began_ns)

    def signals(self, from_ns: int, to_ns: int) -> Sequence[SignalRecord]:
        signals = [
            signal
            for batch in self.batches(from_ns, to_ns)
            for signal in slot_batch.decode_signals(batch, max(from_ns, 0), min(to_ns, _MAX_NS))
        ]
        return sorted(signals, key=lambda signal: signal.time_ns)

    def marks(self, from_ns: int, to_ns: int) -> Sequence[MarkRecord]:
        marks = [
            mark
            for batch in self.batches(from_ns, to_ns)
            for mark in slot_batch.decode_marks(batch, max(from_ns, 0), min(to_ns, _MAX_NS))
        ]
        return sorted(marks, key=lambda mark: mark.time_ns)

    def batches(self, from_ns: int, to_ns: int) -> Iterator[SlotBatch]:
        """See HasBatches."""
        with self._lock:
            parts = self._slots.parts(from_ns, to_ns)
        for batch in slot_store.unpacked(parts):
            if batch.time_ns >= from_ns and slot_batch.first_ns(batch) < to_ns:
                yield batch

    def lost_records(self, from_ns: int, to_ns: int) -> int | None:
        """See KnowsLosses. A loss that lies in a part of the span counts by its share."""
        with self._lock:
            losses = tuple(self._losses)
            if self._slots_ns is None:
                return None
        return sum(loss.count_in(from_ns, to_ns) for loss in losses)
