"""The recorder: a fault of the thread that copies ring records ends the recording."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

from unit.recording.test_recording import scans

from locktop.collector.recording.recorder import Recorder, RecordingPath
from locktop.collector.recording.recording import Recording
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
    assert opened.at(opened.times_ns()[0]) == scans(1)[0]
    opened.close()
