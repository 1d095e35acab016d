"""Records without a screen: scans until the process ends, a time is over, or a signal arrives."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from locktop.collector.errors import LocktopError
from locktop.collector.linux.signal_wakeup import SignalWakeup
from locktop.collector.model import Snapshot
from locktop.collector.recording.recorder import Recorder
from locktop.collector.recording.requested_sections import RequestedSections
from locktop.collector.recording.second_signal import SecondSignal
from locktop.collector.render.snapshot_signal import SnapshotSignal
from locktop.collector.sources.base import Source

_POLL_S = 0.2
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class RecordLoop:
    """Scans a process for a recorder. The first signal ends the loop with a last full scan, the
    second one shortens that scan.
    """

    def __init__(self, source: Source, recorder: Recorder, say: Callable[[str], object]) -> None:
        """``say`` prints a line for the user."""
        self._source = source
        self._scans = RequestedSections(source)
        self._recorder = recorder
        self._say = say
        self._wakeup = SignalWakeup()
        self._signal: signal.Signals | None = None
        self._second = SecondSignal()
        self._on_demand = SnapshotSignal(self._wakeup.wake)

    def run(self, every_s: float, duration_s: float | None = None) -> None:
        """Record, and end the recording.

        Args:
            every_s: the interval between two scans, seconds.
            duration_s: how long, seconds; None: until the end of the process.

        Raises:
            LocktopError: the file cannot be made or can take no more, or the process cannot be
                scanned any more. The recording is readable up to that moment.
        """
        for number in _END_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        self._on_demand.install()
        reason = "the process cannot be scanned any more"
        try:
            reason = self._scan_until(every_s, duration_s)
        finally:
            self._recorder.finish(reason)
        if self._recorder.problem:
            raise LocktopError(self._recorder.problem)

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Wait after ``run`` until ``is_over`` returns true, or until a signal arrives."""
        while self._signal is None and not is_over():
            self._wakeup.sleep(_POLL_S)

    def stop(self) -> None:
        """End the loop with a last scan, as a signal does. Another thread may call this."""
        self._on_signal(signal.SIGTERM, None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._second.arrives():
            self._source.hurry()
        self._signal = signal.Signals(number)
        self._wakeup.wake()

    def _scan_until(self, every_s: float, duration_s: float | None) -> str:
        """Return why the recording ends."""
        end = None if duration_s is None else time.monotonic() + duration_s
        while True:
            began = time.monotonic()
            is_last = self._signal is not None or (end is not None and began >= end)
            snapshot = self._scans.scan(resolve=is_last)
            self._recorder.add(snapshot)
            if self._recorder.problem:
                return ""
            if self._recorder.figures.snapshots == 1:
                process = snapshot.process
                self._say(f"recording {process.comm} {process.pid} to {self._recorder.path}")
            if snapshot.ended:
                return "the process has ended"
            if is_last:
                return f"{self._signal.name}" if self._signal else "its time is over"
            self._save_on_demand(snapshot)
            self._sleep_until(min(began + every_s, end or float("inf")))

    def _sleep_until(self, when: float) -> None:
        if self._signal is None:
            self._wakeup.sleep(when - time.monotonic())

    def _save_on_demand(self, snapshot: Snapshot) -> None:
        if line := self._on_demand.save(snapshot):
            self._say(line)
