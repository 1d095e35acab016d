"""Predicts the gain of changes of the locks, in a live process or in a recording."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.analysis.answer import MAX_UNOBSERVED, Question, answer
from locktop.collector.extensions.whatif.analysis.futex_locks import convert_futexes
from locktop.collector.extensions.whatif.analysis.lanes import form_lanes
from locktop.collector.extensions.whatif.analysis.semaphore_locks import convert_semaphores
from locktop.collector.extensions.whatif.evidence import observe, recorded, unobserved_share
from locktop.collector.extensions.whatif.model import (
    Prediction,
    Progress,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.extensions.whatif.question import (
    WantedChanges,
    changes_of,
    check_held,
    check_marks,
    check_used,
    unit_of,
)
from locktop.collector.extensions.whatif.sentences import REASONS, change, gain
from locktop.collector.extensions.whatif.simulator import Simulator
from locktop.collector.model import Snapshot, ThreadState
from locktop.collector.recording.moments import Moments
from locktop.collector.render.words import present_waits, verdict
from locktop.collector.sources.base import Source


class Answered(Struct, frozen=True):
    """The answers, and a snapshot with the names of the locks."""

    whatif: WhatIf
    snapshot: Snapshot

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the section of the answers."""
        return replace(snapshot, sections={**snapshot.sections, "whatif": self.whatif})


def why_hopeless(snapshot: Snapshot) -> str:
    """Return why a recording would end in a refusal, by the snapshot before it; "" if unknown."""
    if unobserved_share(snapshot) > MAX_UNOBSERVED:
        return REASONS[WhatIfRefusal.UNOBSERVED]
    goes_on = any(lock.rates.acquisitions for lock in snapshot.locks) or not snapshot.interval_s
    if goes_on or not verdict.is_deadlocked(snapshot):
        return ""
    return f"nothing goes on at the locks: {verdict.line(snapshot)}"


def predict_process(
    source: Source,
    pid: int,
    duration_s: float,
    wanted: WantedChanges,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Answered:
    """Record all holds of a process for some seconds, and answer.

    Args:
        source: the process; the caller closes it.
        pid: the same process.
        duration_s: seconds.
        wanted: the changes; none: the likely ones.
        on_progress: is called again and again, in this thread.

    Raises:
        LocktopError: the process cannot be recorded, or a change does not fit it.
    """
    first = source.scan(resolve=True)
    question = Question(changes_of(wanted, first), unit_of(wanted, first))

    def on_records(part: float, records: int) -> None:
        learned = f"{records:,} waits, holds and signals" if records else ""
        on_progress(Progress(is_recorded=False, part=part, learned=learned))

    observed = observe(source, pid, duration_s, on_records)
    on_progress(Progress(is_recorded=True, part=0.0))
    evidence = form_lanes(convert_semaphores(convert_futexes(observed.evidence)))
    check_marks(question.unit, evidence.marks)
    check_held(question.changes, evidence, observed.snapshot)
    check_used(question.changes, evidence, observed.snapshot)
    what_if = replace(
        answer(evidence, question, Simulator, _on_replay(observed.snapshot, on_progress)),
        recording_cost=observed.recording_cost,
        level_before=observed.level_before,
        level_after=observed.level_after,
    )
    return _complete(what_if, observed.snapshot)


def predict_recording(
    moments: Moments,
    from_ns: int,
    to_ns: int,
    wanted: WantedChanges,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Answered:
    """Answer from a span of a recording, nanoseconds since 1970. Raises LocktopError."""
    on_progress(Progress(is_recorded=True, part=0.0))
    observed, snapshot = recorded(moments, from_ns, to_ns)
    evidence = form_lanes(convert_semaphores(convert_futexes(observed)))
    question = Question(changes_of(wanted, snapshot), unit_of(wanted, snapshot))
    check_marks(question.unit, evidence.marks)
    check_held(question.changes, evidence, snapshot)
    check_used(question.changes, evidence, snapshot)
    what_if = answer(evidence, question, Simulator, _on_replay(snapshot, on_progress))
    return _complete(replace(what_if, is_recorded=True), snapshot)


def _on_replay(
    snapshot: Snapshot, on_progress: Callable[[Progress], None]
) -> Callable[[float, Prediction | None], None]:
    names = {lock.id: lock.name for lock in snapshot.locks}

    def on_replay(part: float, best: Prediction | None) -> None:
        learned = f"{change(best.change, names)} {gain(best.ratio)}" if best is not None else ""
        on_progress(Progress(is_recorded=True, part=part, learned=learned))

    return on_replay


def _complete(what_if: WhatIf, snapshot: Snapshot) -> Answered:
    """Return the answers with their time and the names of their locks, as a report needs them."""
    locks = {prediction.change.lock for prediction in what_if.predictions} | {
        share.lock for share in what_if.pressure
    }
    locks |= {refusal.change.lock for refusal in what_if.refused} | {what_if.unit.lock}
    locks |= what_if.partly_seen.keys()
    names = {lock.id: lock.name for lock in snapshot.locks if lock.id in locks}
    if what_if.refusal is WhatIfRefusal.FEW:
        what_if = replace(what_if, stuck=_stuck(what_if, snapshot))
    return Answered(replace(what_if, taken_at=snapshot.taken_at, names=names), snapshot)


def _stuck(what_if: WhatIf, snapshot: Snapshot) -> str:
    """Return which threads have waited for all of the span, where no round ended in it; or ""."""
    waits = [
        thread.waiting_for.duration_s
        for thread in snapshot.threads
        if thread.waiting_for is not None and thread.state is ThreadState.WAITING
    ]
    if what_if.rounds_per_s or max(waits, default=0.0) < what_if.span_s:
        return ""
    if verdict.is_deadlocked(snapshot):
        return verdict.line(snapshot)
    return next(present_waits.sentences(snapshot), "")


def span_until(moments: Moments, end_ns: int, duration_s: float) -> tuple[int, int]:
    """Return the span of a recording that ends at a moment, nanoseconds since 1970.

    Near its begin the recording has no such span. There the span is the first one of this length.

    Args:
        moments: the recording.
        end_ns: the moment.
        duration_s: at most so many seconds.

    Raises:
        LocktopError: the recording has no snapshot.
    """
    times_ns = moments.times_ns()
    if not times_ns:
        raise LocktopError("the recording has no snapshot")
    length_ns = round(duration_s * 1e9)
    to_ns = min(times_ns[-1], max(end_ns, times_ns[0] + length_ns))
    return max(times_ns[0], to_ns - length_ns), to_ns
