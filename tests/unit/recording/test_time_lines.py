"""Time lines read from a past."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import FixedPast, at, record, relay
from unit.builders.waits import wait, waiting

from locktop.collector.errors import LocktopError
from locktop.collector.model import (
    Frame,
    LaneState,
    Notable,
    NotableKind,
    Snapshot,
    ThreadState,
)
from locktop.collector.recording.history import History
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.recording.time_lines import (
    MAX_SCANS,
    TimeLineReader,
    TooManyRecordsError,
)
from locktop.collector.shm.slot_batch import SlotBatch


def test_a_past_has_lanes_flows_and_names() -> None:
    found = TimeLineReader(relay()).read(at(2000), at(4000))
    assert (found.from_ns, found.to_ns) == (at(2000), at(4000))
    assert {lane.tid: lane.name for lane in found.lanes} == {
        4712: "worker-0", 4713: "worker-1", 4714: "logger",
    }  # fmt: skip
    assert [flow.from_tid for flow in found.flows if flow.lock == 1][:3] == [4713, 4712, 4713]
    assert found.snapshot.locks[0].name == "journal"
    assert not found.is_sampled


def test_a_span_is_cut_at_what_is_kept() -> None:
    found = TimeLineReader(relay(2)).read(at(-5000), at(500_000))
    assert (found.from_ns, found.to_ns) == (at(0), at(2000))


def test_a_long_wait_before_the_first_snapshot_is_in_the_time_line() -> None:
    scans = {at(0): waiting(), at(100): waiting()}
    long_wait = record(1, -5000, 2500, 5)
    moment = Notable(at(-2500), NotableKind.WAIT, "t1 waited 2.50 s", tid=1)
    past = FixedPast(scans, [long_wait], [moment])
    reader = TimeLineReader(past)
    assert reader.bounds() == (at(-5000), at(100))
    found = reader.read(at(-9000), at(100))
    assert found.from_ns == at(-5000)
    (lane,) = [one for one in found.lanes if one.tid == 1]
    assert [one.record for one in lane.waits] == [long_wait]
    assert lane.wait_ns == 2_500_000_000
    assert found.notables == (moment,)
    only_before = reader.read(at(-5000), at(-4000))
    assert only_before.lanes[0].wait_ns == 1_000_000_000


def test_a_moment_of_a_forged_time_does_not_stretch_the_time_line() -> None:
    scans = {at(0): waiting(), at(100): waiting()}
    moment = Notable(1, NotableKind.WAIT, "forged", tid=1)
    assert TimeLineReader(FixedPast(scans, [], [moment])).bounds() == (at(0), at(100))


def test_one_snapshot_is_no_span() -> None:
    past = FixedPast({at(0): records.snapshot((), ())})
    with pytest.raises(LocktopError, match="two snapshots"):
        TimeLineReader(past).bounds()
    with pytest.raises(LocktopError, match="no snapshots in this span"):
        TimeLineReader(relay()).read(at(90_000), at(91_000))


def test_an_ongoing_wait_and_its_later_record_count_once() -> None:
    scans = {
        at(0): waiting(t1=wait(duration_s=0.02)),
        at(100): waiting(t1=wait(duration_s=0.12)),
        at(200): waiting(),
    }
    seen = TimeLineReader(FixedPast(scans)).read(at(0), at(100))
    assert [one.is_open for one in seen.lanes[0].waits] == [True]
    exact = record(1, -19, 150, 5)
    found = TimeLineReader(FixedPast(scans, [exact])).read(at(0), at(200))
    assert [one.record for one in found.lanes[0].waits] == [exact]


def test_stacks_of_older_snapshots_stay_known() -> None:
    old: Snapshot = records.snapshot((), (), stacks={50: (Frame(1, "f", None, None, "m", 1),)})
    past = FixedPast({at(0): old, at(100): replace(old, stacks={})}, [record(1, 5, 5, stack=50)])
    assert TimeLineReader(past).read(at(0), at(100)).snapshot.stacks == old.stacks


def test_lost_records_are_counted() -> None:
    base = records.snapshot((), ())
    past = FixedPast({at(n * 100): replace(base, lost_events=n) for n in range(8)})
    assert TimeLineReader(past).read(at(200), at(500)).lost_records == 3


def test_notable_moments_of_the_span_come_along() -> None:
    marks = [Notable(at(ms), NotableKind.MARK, str(ms)) for ms in (100, 300, 900)]
    base = records.snapshot((), ())
    past = FixedPast({at(0): base, at(1000): base}, notables=marks)
    found = TimeLineReader(past).read(at(200), at(500))
    assert [one.text for one in found.notables] == ["300"]


def test_of_many_exact_scans_a_part_is_read_and_of_samples_all() -> None:
    class Counted(FixedPast):
        reads = 0

        def snapshot_at(self, time_ns: int) -> Snapshot:
            self.reads += 1
            return super().snapshot_at(time_ns)

    base = records.snapshot((records.thread(1, "t", ThreadState.RUNNING),), ())
    count = 3 * MAX_SCANS
    exact = Counted({at(n): base for n in range(count)})
    TimeLineReader(exact).read(at(0), at(count))
    assert exact.reads <= MAX_SCANS + 1
    samples = Counted({at(n): records.sampled(base) for n in range(count)})
    reader = TimeLineReader(samples)
    reader.read(at(0), at(count))
    assert samples.reads == count + 1
    reader.read(at(0), at(count))
    assert samples.reads == count + 2  # nothing is read twice but the newest


def test_the_scans_beside_a_pause_are_read_among_many() -> None:
    """A listener had no sender for 20 seconds. Nothing is known of that time."""
    base = records.snapshot((records.thread(1, "t", ThreadState.RUNNING),), ())
    before, after = range(4 * MAX_SCANS), range(30_000, 30_000 + 4 * MAX_SCANS)
    scans = {at(n): base for n in (*before, *after)}
    scans[at(after[0])] = replace(base, interval_s=0.0)
    (lane,) = TimeLineReader(FixedPast(scans)).read(at(0), at(after[-1])).lanes
    assert [(one.from_ns, one.to_ns) for one in lane.spans if one.state is LaneState.UNKNOWN] == [
        (at(before[-1]), at(after[0]))
    ]


def test_a_memory_is_a_past() -> None:
    history = History()
    for number, snapshot in enumerate(relay(1).snapshots.values()):
        history.add(snapshot, at(500 * number))
    found = TimeLineReader(history).read(at(0), at(1000))
    assert {span.state for lane in found.lanes for span in lane.spans} == {LaneState.RUNNING}


def test_a_span_with_too_many_records_is_refused_with_a_length_that_fits() -> None:
    reader = TimeLineReader(relay(100), max_records=100)
    with pytest.raises(TooManyRecordsError, match="more than 200 waits") as caught:
        reader.read(at(0), at(100_000))
    fitting_ns = caught.value.span_ns
    assert 1e9 <= fitting_ns <= 20e9
    found = reader.read(at(50_000), at(50_000) + fitting_ns)
    assert sum(len(lane.waits) for lane in found.lanes) <= 200


def test_a_recording_knows_its_losses_better_than_its_scans(tmp_path: Path) -> None:
    base = records.snapshot((), ())
    writer = RecordingWriter(tmp_path / "r", RecordingInfo.from_snapshot(base, "test"), at(0))
    for number in range(5):
        writer.add_snapshot(replace(base, lost_events=100 * number), at(1000 * number))
        batch = SlotBatch(ticks=0, time_ns=at(1000 * number + 1), hz=1e9, lost=number, records=b"")
        writer.add_slots(batch)
    writer.finish("the end", at(5000))
    recording = Recording(tmp_path / "r")
    assert TimeLineReader(recording).read(at(1000), at(3000)).lost_records == 1 + 2
    recording.close()
