"""The recorder: a fault of the thread that copies ring records ends the recording."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from support.shared_file import record
from unit.recording.test_recording import scans

from locktop.collector.linux.process_info import iso
from locktop.collector.model import Snapshot
from locktop.collector.recording.recorded_source import RecordedSource
from locktop.collector.recording.recorder import Recorder, RecordingPath
from locktop.collector.recording.recording import Recording
from locktop.collector.shm import slot_batch
from locktop.collector.shm.ring_drain import Drained
from locktop.collector.shm.slot_batch import SlotBatch
from locktop.collector.sources.base import Source


class _FailingDrain:
    """The drain of a process, and the process itself. Each call fails as soon as it may."""

    def __init__(self) -> None:
        self.may_fail, self.failed = threading.Event(), threading.Event()
        self.is_closed = False

    def drain(self) -> _FailingDrain:
        return self

    def take(self, within_s: float) -> None:
        self.may_fail.wait()
        self.failed.set()
        raise OverflowError("a number of a damaged ring")

    def close(self) -> None:
        self.is_closed = True


class _BusyDrain:
    """The drain of a process that makes records for ever, and the process itself."""

    def __init__(self, has_more: int) -> None:
        self._has_more = has_more
        self.calls = 0

    def drain(self) -> _BusyDrain:
        return self

    @property
    def has_more(self) -> bool:
        return self.calls < self._has_more

    def take(self, within_s: float) -> Drained:
        if within_s:
            time.sleep(0.001)
        else:
            self.calls += 1
        raw = SlotBatch(ticks=0, time_ns=time.time_ns(), hz=1e9, lost=0, records=record(tid=1))
        slots = slot_batch.pack(raw)
        return Drained(slots=slots, long_waits=slot_batch.replace_records(slots, b""))

    def close(self) -> None:
        pass


@pytest.mark.parametrize("more", [0, 3])
def test_the_last_calls_end_with_the_first_batch_that_is_not_full(
    tmp_path: Path, more: int
) -> None:
    busy = _BusyDrain(more)
    recorder = Recorder(cast(Source, busy), RecordingPath(tmp_path / "r"))
    recorder.add(scans(1)[0])
    recorder.finish("its time is over")
    assert recorder.problem == ""
    assert busy.calls == max(1, more)


def test_a_fault_while_ring_records_are_copied_ends_the_recording(tmp_path: Path) -> None:
    failing = _FailingDrain()
    recorder = Recorder(cast(Source, failing), RecordingPath(tmp_path / "r"))
    recorder.add(scans(1)[0])
    failing.may_fail.set()
    failing.failed.wait()
    recorder.finish("the process has ended")
    assert recorder.problem == (
        "the recording ends here: OverflowError: a number of a damaged ring"
    )
    assert failing.is_closed
    opened = Recording(tmp_path / "r")
    assert opened.snapshot_at(opened.times_ns()[0]) == scans(1)[0]
    opened.close()


def test_a_snapshot_has_the_time_at_which_the_process_was_read(tmp_path: Path) -> None:
    """A scan may take long after that, on a busy machine or with many names."""
    recorder = Recorder(cast(Source, _IdleSource()), RecordingPath(tmp_path / "r"))
    taken_s = round(time.time() - 2.0, 3)
    for _ in range(2):  # two scans of one millisecond
        recorder.add(replace(scans(1)[0], taken_at=iso(taken_s)))
    recorder.finish("over")
    opened = Recording(tmp_path / "r")
    taken_ns = round(taken_s * 1000) * 1_000_000
    assert opened.times_ns() == [taken_ns, taken_ns + 1]
    opened.close()


class _IdleSource:
    """A sampled process of one snapshot."""

    def __init__(self) -> None:
        self.snapshot = scans(1)[0]

    def scan(self, resolve: bool = False) -> Snapshot:
        return self.snapshot

    def want_section(self, name: str, wanted: bool) -> None:
        pass

    def drain(self) -> None:
        return None


def test_a_file_that_cannot_be_made_does_not_end_the_scans(tmp_path: Path) -> None:
    source = _IdleSource()
    recorder = Recorder(cast(Source, source), RecordingPath(tmp_path / "none" / "r"))
    recorded = RecordedSource(cast(Source, source), recorder)
    reason = f"{tmp_path}/none/r: cannot be made: no such file or directory"
    for _ in range(2):
        assert recorded.scan().notes == (f"nothing is recorded any more: {reason}",)
        (tmp_path / "none").mkdir(exist_ok=True)  # the recording does not begin later
    recorder.add(replace(source.snapshot, duration_s=1e6))
    assert recorder.problem == reason
    assert not (tmp_path / "none" / "r").exists()
