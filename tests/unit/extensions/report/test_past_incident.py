"""The heat map and the time line of a report, from the past of a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from support import reference_cells
from support.shared_file import record
from unit.builders.time_lines import FixedPast, at, relay

from locktop.collector.extensions.report.incident import Heat, Incident
from locktop.collector.extensions.report.past_incident import past_incident
from locktop.collector.recording.chosen_moment import Span
from locktop.collector.shm.event_ring import SIZE
from locktop.collector.shm.kinds import KINDS
from locktop.collector.shm.slot_batch import SlotBatch

NUMBERS = {kind: number for number, kind in KINDS.items()}


class PastWithBatches(FixedPast):
    """A past that has its records as a ring has them, by a clock of nanoseconds."""

    def batches(self, from_ns: int, to_ns: int) -> Iterator[SlotBatch]:
        """See HasBatches."""
        slots = [
            record(
                kind=NUMBERS[one.kind], tid=one.tid, lock=one.lock, stack=one.stack,
                start=one.began_ns, wait=one.wait_ns, hold=one.hold_ns or 0,
            )
            for one in self.records(from_ns, to_ns)
        ]  # fmt: skip
        half = len(slots) // 2
        for part in (slots[:half], slots[half:]):
            assert all(len(slot) == SIZE for slot in part)
            yield SlotBatch(ticks=to_ns, time_ns=to_ns, hz=1e9, lost=0, records=b"".join(part))


def incident(past: FixedPast, max_records: int = 10_000) -> Incident:
    times = past.times_ns()
    span = Span(past.snapshot_at(times[-1]))
    return past_incident(past, span, None, times[-1], max_records)


def waited(heat: Heat) -> Counter[tuple[int, int]]:
    """Return the microseconds by lock and thread."""
    cells = reference_cells.unpacked_heat(heat)
    sums: Counter[tuple[int, int]] = Counter()
    for (lock, tid, _, _), us in cells.items():
        sums[lock, tid] += us
    return sums


def test_the_cells_have_all_waits_of_the_time_line() -> None:
    result = incident(relay())
    assert result.heat is not None
    assert result.time_line is not None
    sums = waited(result.heat)
    for lane in result.time_line.lanes:
        of_thread = sum(us for (_, tid), us in sums.items() if tid == lane.tid)
        assert abs(of_thread * 1000 - lane.wait_ns) < 2000
    assert sum(sums.values()) > 5_000_000


def test_many_records_are_folded_from_the_batches() -> None:
    past = relay()
    with_batches = PastWithBatches(past.snapshots, past.found)
    whole, folded = incident(past), incident(with_batches, max_records=20)
    assert whole.heat is not None
    assert folded.heat is not None
    assert waited(folded.heat) == waited(whole.heat)
    assert folded.time_line is not None
    assert folded.time_line.from_ns > at(0)
    assert folded.time_line.to_ns == past.times_ns()[-1]


def test_one_snapshot_has_no_heat_map() -> None:
    past = relay()
    first = past.times_ns()[0]
    result = past_incident(past, Span(past.snapshot_at(first)), None, first)
    assert result.heat is None
    assert "one snapshot alone" in result.notes[0]
