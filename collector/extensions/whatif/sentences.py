"""Sentences about predictions, for the screen and the reports."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    Prediction,
    RefusedChange,
    UnitKind,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.model import Snapshot
from locktop.collector.render.words.units import counted
from locktop.collector.sanitize import clean

_HALF = 0.5
_UNITS = {
    UnitKind.ROUNDS: "rounds",
    UnitKind.LOCK: "acquisitions",
    UnitKind.MARKS: "transactions",
}
#: The sentences of FEW by unit.
_SELDOM = {
    UnitKind.ROUNDS: "the process used its locks too seldom in this time",
    UnitKind.LOCK: "threads took this lock too seldom in this time",
    UnitKind.MARKS: "the process set these marks too seldom in this time",
}
_REASONS = {
    WhatIfRefusal.LOST: (
        "records were overwritten before locktop could read them; raise LOCKTOP_RING before the"
        " program starts"
    ),
    WhatIfRefusal.PHASES: (
        "the throughput changes within the span; record one phase of the program alone"
    ),
    WhatIfRefusal.STARVED: "threads wait for CPUs while CPUs are free, as with a limit of CPU time",
    WhatIfRefusal.DEPENDENT: (
        "the threads of this group end each other's waits; nobody knows whom another number of"
        " them would wake"
    ),
    WhatIfRefusal.REQUESTS: (
        "the threads of this group mostly wait for requests; another number of them does not change"
        " how many requests come"
    ),
    WhatIfRefusal.STOPPED: (
        "after the change, too many threads of the replay wait for all of its time"
    ),
    WhatIfRefusal.BRIEF: "threads begin and end in the span, and no thread waits for their ends",
    WhatIfRefusal.UNOBSERVED: "threads wait in calls that the library does not see",
}


def lock_names(what_if: WhatIf, snapshot: Snapshot) -> dict[int, str]:
    """Return the names of locks by id.

    Args:
        what_if: predictions, which have the names of their time.
        snapshot: of the same process, perhaps a later one.
    """
    return {lock.id: lock.name for lock in snapshot.locks} | dict(what_if.names)


def change(wanted: Change, names: Mapping[int, str]) -> str:
    """Return a change: ``index_mu: hold half as long``.

    Args:
        wanted: the change.
        names: of the locks by id.
    """
    name = names.get(wanted.lock, f"lock {wanted.lock}")
    amount = f"{wanted.amount:g}"
    match wanted.kind:
        case ChangeKind.HOLD:
            how = "half as long" if wanted.amount == _HALF else f"{amount} times as long"
            return f"{name}: hold {how}"
        case ChangeKind.SPLIT:
            return f"{name}: split by {amount}"
        case ChangeKind.RW:
            return f"{name}: rwlock, {wanted.amount * 100:g} % reads"
        case ChangeKind.THREADS:
            return f"{wanted.group}: {counted(round(wanted.amount), 'thread')}"
        case ChangeKind.CPUS:
            return counted(round(wanted.amount), "CPU")


def gain(ratio: float) -> str:
    """Return a ratio of throughputs as a gain: ``+31 %``, ``-1 %``."""
    part = (ratio - 1) * 100
    return "+0 %" if abs(part) < 0.5 else f"{part:+.0f} %"


def interval(prediction: Prediction) -> str:
    """Return the interval of a prediction: ``+24 to +37 %``."""
    low, high = gain(prediction.low).removesuffix(" %"), gain(prediction.high)
    return f"{low} to {high}"


def rounds(what_if: WhatIf, names: Mapping[int, str]) -> str:
    """Return what is counted."""
    unit = what_if.unit
    match unit.kind:
        case UnitKind.LOCK:
            return f"acquisitions of {names.get(unit.lock, f'lock {unit.lock}')}"
        case UnitKind.MARKS:
            return f'transactions: marks "{clean(unit.mark)}"'
        case UnitKind.ROUNDS:
            return "rounds: each thread from one call to the next one of its kind"


def unit(what_if: WhatIf) -> str:
    """Return one word for what is counted: ``rounds``."""
    return _UNITS[what_if.unit.kind]


def refusal(what_if: WhatIf) -> str:
    """Return why there are no predictions; "" if there are."""
    return reason(what_if.refusal, what_if) if what_if.refusal is not None else ""


def reason(refused: WhatIfRefusal, what_if: WhatIf) -> str:
    """Return a reason for no prediction, without a full stop.

    Args:
        refused: the reason.
        what_if: the answers, of which it is one.
    """
    match refused:
        case WhatIfRefusal.FEW:
            return f"{_SELDOM[what_if.unit.kind]}; record for longer (-d)"
        case WhatIfRefusal.REPLAY:
            return _replay_differs(what_if)
        case _:
            return _REASONS[refused]


def _replay_differs(what_if: WhatIf) -> str:
    # A difference of 5.01 % is more than 5 %, so the text says 5.1 %.
    differs = max(5.1, round(abs(what_if.replayed - 1) * 100, 1))
    how = "more" if what_if.replayed > 1 else "less"
    is_of_lock = what_if.unit.kind is UnitKind.LOCK
    advice = "record again" if is_of_lock else "record again, or name a lock with --throughput"
    return (
        f"without a change, the replay has {differs:g} % {how} throughput than was recorded; at"
        f" most 5 % more or less is allowed; {advice}"
    )


def no_prediction(what_if: WhatIf) -> str:
    """Return the sentence for a refusal, with its short name in docs/whatif.md."""
    return f"No prediction ({what_if.refusal}): {refusal(what_if)}."


def refused_change(refused: RefusedChange, what_if: WhatIf, names: Mapping[int, str]) -> str:
    """Return the sentence for a change without a prediction; ``names``: of the locks by id."""
    said = reason(refused.reason, what_if)
    return f"{change(refused.change, names)}: no prediction ({refused.reason}): {said}."


def notes(what_if: WhatIf) -> list[str]:
    """Return what limits the predictions, one sentence each."""
    said = []
    cpus = [
        prediction.change.amount
        for prediction in what_if.predictions
        if prediction.change.kind is ChangeKind.CPUS
    ]
    if any(count > what_if.cpus for count in cpus):
        said.append(
            f"The process may use {counted(what_if.cpus, 'CPU')}. Predictions for more CPUs were"
            " right for threads that sleep alone, and too high for threads that compute."
        )
    kinds = {prediction.change.kind for prediction in what_if.predictions}
    if what_if.is_recorded and kinds & {ChangeKind.THREADS, ChangeKind.CPUS}:
        said.append(
            "A recording does not say which threads wait for requests, or what other programs and"
            " a limit of CPU time took."
        )
    if any(prediction.change.kind is ChangeKind.SPLIT for prediction in what_if.predictions):
        said.append("A split assumes that threads take each of the new locks equally often.")
    return said
