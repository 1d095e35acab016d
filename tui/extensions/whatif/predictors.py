"""The sources of predictions: a live process, or the recording of a replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif import answers, sentences
from locktop.collector.extensions.whatif.evidence import (
    recording_s,
    why_not_observed,
    why_not_replayed,
)
from locktop.collector.extensions.whatif.model import Progress
from locktop.collector.extensions.whatif.question import WantedChanges
from locktop.collector.model import Snapshot
from locktop.collector.recording.moments import Moments
from locktop.tui.past import Past
from locktop.tui.screens.view_host import ViewHost
from locktop.tui.views.past_flag import clock_text

#: Seconds of records.
DURATION_S = 10.0

_NOT_LIVE = "there is nothing to record: this is a recording"
_ELSEWHERE = "predictions are made where the process runs: `locktop whatif -p PID`"


class Predictor(Protocol):
    """Makes predictions, and tells before what it needs."""

    @property
    def recording_s(self) -> float:
        """Seconds for which the process is recorded first; 0: nothing is recorded."""
        ...

    def begin(self) -> str:
        """Return the effect of Enter: ``records all holds for 10 s``."""
        ...

    def steps(self) -> tuple[str, ...]:
        """Return what Enter does and costs, a sentence each."""
        ...

    def why_not(self, snapshot: Snapshot) -> str:
        """Return why there can be no predictions, for the snapshot on the screen; "" if unknown."""
        ...

    def predict(self, on_progress: Callable[[Progress], None]) -> answers.Answered:
        """Record, if need be, and predict. The call blocks. Raises LocktopError."""
        ...


class LivePredictor:
    """Records the process of the screen. See Predictor for the methods."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: its feed has the process, if that runs on this machine."""
        self._host = host

    @property
    def recording_s(self) -> float:
        return recording_s(DURATION_S)

    def begin(self) -> str:
        return f"records all holds for {DURATION_S:g} s (level all)"

    def steps(self) -> tuple[str, ...]:
        return sentences.recording_steps(recording_s(DURATION_S) - DURATION_S, DURATION_S)

    def why_not(self, snapshot: Snapshot) -> str:
        if self._host.feed.source is not None:
            return why_not_observed(snapshot) or answers.why_hopeless(snapshot)
        return _NOT_LIVE if self._host.past.is_replay else _ELSEWHERE

    def predict(self, on_progress: Callable[[Progress], None]) -> answers.Answered:
        source = self._host.feed.source
        if source is None:
            raise LocktopError(_NOT_LIVE if self._host.past.is_replay else _ELSEWHERE)
        pid = source.scan().process.pid
        return answers.predict_process(source, pid, DURATION_S, WantedChanges(), on_progress)


class ReplayPredictor:
    """Takes the span that ends at the moment on the screen. See Predictor for the methods."""

    recording_s = 0.0

    def __init__(self, past: Past) -> None:
        """``past``: has the recording and the moment."""
        self._past = past

    def _recording(self) -> Moments:
        if self._past.moments is None:
            raise LocktopError("there is no recording")
        return self._past.moments

    def _span_ns(self) -> tuple[int, int]:
        return answers.span_until(self._recording(), self._past.time_ns or 0, DURATION_S)

    def begin(self) -> str:
        try:
            from_ns, to_ns = self._span_ns()
        except LocktopError:
            return "predicts from the recording"
        return f"predicts from the recording, {clock_text(from_ns)} to {clock_text(to_ns)}"

    def steps(self) -> tuple[str, ...]:
        return sentences.replay_steps()

    def why_not(self, snapshot: Snapshot) -> str:
        """See Predictor. The span may end after ``snapshot``."""
        try:
            return why_not_replayed(self._recording().snapshot_at(self._span_ns()[1]))
        except LocktopError as error:
            return str(error)

    def predict(self, on_progress: Callable[[Progress], None]) -> answers.Answered:
        return answers.predict_recording(
            self._recording(), *self._span_ns(), WantedChanges(), on_progress
        )
