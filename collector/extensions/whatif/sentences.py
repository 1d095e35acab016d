"""Sentences about predictions, for the screen and the reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

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
from locktop.collector.render.words.units import counted, percent
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
#: The sentences of the other reasons: what happened, and what the user can do.
REASONS = {
    WhatIfRefusal.LOST: (
        "the process overwrote records before locktop could read them; start it with a larger"
        " LOCKTOP_RING"
    ),
    WhatIfRefusal.STARVED: (
        "threads wait for CPUs while CPUs are free, as with a limit of CPU time; try again without"
        " that limit"
    ),
    WhatIfRefusal.DEPENDENT: (
        "the threads of this group end each other's waits, and nobody knows whom another number of"
        " them would wake; try a change of a lock"
    ),
    WhatIfRefusal.REQUESTS: (
        "the threads of this group mostly wait for requests, and another number of them does not"
        " change how many requests come; try a change of a lock"
    ),
    WhatIfRefusal.STOPPED: (
        "after the change, too many threads of the replay wait for all of its time; try a smaller"
        " change"
    ),
    WhatIfRefusal.BRIEF: (
        "threads begin and end in the span, and no thread waits for their ends; try again while"
        " the threads stay"
    ),
    WhatIfRefusal.UNOBSERVED: (
        "threads wait in calls that the library does not see, so a replay would be wrong; try"
        " again while they do not"
    ),
    WhatIfRefusal.UNRECORDED: (
        "threads wait for a futex that is a lock, such as a Rust Mutex; a thread that takes a"
        " free one makes no system call, so too few of these holds have records to replay"
    ),
}
#: The way to the reason that threads are stuck: for a command, and on the screen.
_EXPLAINED = ("`locktop check` explains it", "the keys 4 and 5 explain it")
#: The advice on the screen: with a process, and in a recording.
_AGAIN = {
    WhatIfRefusal.FEW: "press Enter again while it has more to do",
    WhatIfRefusal.PHASES: "try again in a steady minute: press Enter",
    WhatIfRefusal.REPLAY: "press Enter to record again",
}
_OTHER_MOMENT = "leave with Esc, go to another moment ([ ] or :), and press U again"
#: The names of what a prediction has, in texts and on the screen.
LIKELY_RANGE, AT_MOST = "likely range", "at most"
#: The work of locktop for predictions.
REPLAYS = (
    "Then locktop replays the records on simulated CPUs and locks: without a change, and with each"
    " likely one, as a lock that is held half as long."
)
NEEDS = (
    "The program should do the same kind of work all the time, and its threads should not begin"
    " or end."
)


def recording_steps(before_s: float, duration_s: float) -> tuple[str, ...]:
    """Return what predictions for a live process do, and what they cost, a sentence each.

    Args:
        before_s: seconds that are measured before the recording.
        duration_s: seconds that are recorded.
    """
    return (
        f"locktop measures for {before_s:g} s, then records each wait and each hold for"
        f" {duration_s:g} s: the level becomes all, and afterwards the level before comes back.",
        REPLAYS,
        "Meanwhile each call for a lock takes longer. The programs that were measured kept 95 % of"
        " their throughput or more. The replays take some seconds of one CPU.",
        NEEDS,
    )


def replay_steps() -> tuple[str, ...]:
    """Return the same for a recording."""
    return (
        REPLAYS,
        "The program is not touched. The replays take some seconds of one CPU.",
        NEEDS,
    )


def clock(iso: str) -> str:
    """Return the local time of day of an ISO 8601 time; "?" if it is none."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "?"


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
            return "rounds, each from a call of a thread to its next call of this kind"


def unit(what_if: WhatIf) -> str:
    """Return one word for what is counted: ``rounds``."""
    return _UNITS[what_if.unit.kind]


def refusal(what_if: WhatIf) -> str:
    """Return why there are no predictions; "" if there are."""
    return reason(what_if.refusal, what_if) if what_if.refusal is not None else ""


def reason(refused: WhatIfRefusal, what_if: WhatIf, on_screen: bool = False) -> str:
    """Return a reason for no prediction and what the user can do, without a full stop.

    Args:
        refused: the reason.
        what_if: the answers, of which it is one.
        on_screen: name keys of the screen in place of options.
    """
    if refused is WhatIfRefusal.FEW and what_if.stuck:
        return f"nothing goes on at the locks: {what_if.stuck}; {_EXPLAINED[on_screen]}"
    if refused in REASONS:
        return REASONS[refused]
    match refused:
        case WhatIfRefusal.FEW:
            happened = _SELDOM[what_if.unit.kind]
        case WhatIfRefusal.PHASES:
            happened = _changed_behaviour(what_if)
        case _:
            happened = _replay_differs(what_if)
    if not on_screen:
        return f"{happened}; {_command_advice(refused, what_if)}"
    return f"{happened}; {_OTHER_MOMENT if what_if.is_recorded else _AGAIN[refused]}"


def _changed_behaviour(what_if: WhatIf) -> str:
    when = f" at about {clock(what_if.changed_at)}" if what_if.changed_at else ""
    return f"the program changed its behaviour{when}"


def _replay_differs(what_if: WhatIf) -> str:
    # A difference of 5.01 % is more than 5 %, so the text says 5.1 %.
    differs = max(5.1, round(abs(what_if.replayed - 1) * 100, 1))
    how = "more" if what_if.replayed > 1 else "less"
    return (
        f"without a change, the replay has {differs:g} % {how} throughput than was recorded; at"
        " most 5 % more or less is allowed"
    )


def _command_advice(refused: WhatIfRefusal, what_if: WhatIf) -> str:
    match refused:
        case WhatIfRefusal.FEW:
            return (
                "try again while it has more to do, or record for longer (`locktop whatif -d 60`)"
            )
        case WhatIfRefusal.PHASES:
            return (
                "try again in a steady minute, or choose one of a recording with `--from` and"
                " `--to`"
            )
    is_of_lock = what_if.unit.kind is UnitKind.LOCK
    return "record again" if is_of_lock else "record again, or name a lock with --throughput"


def no_prediction(what_if: WhatIf, on_screen: bool = False) -> str:
    """Return the sentence for a refusal, with its short name in docs/whatif.md."""
    if what_if.refusal is None:
        return ""
    return f"No prediction ({what_if.refusal}): {reason(what_if.refusal, what_if, on_screen)}."


def refused_change(refused: RefusedChange, what_if: WhatIf, names: Mapping[int, str]) -> str:
    """Return the sentence for a change without a prediction; ``names``: of the locks by id."""
    said = reason(refused.reason, what_if)
    return f"{change(refused.change, names)}: no prediction ({refused.reason}): {said}."


def notes(what_if: WhatIf) -> list[str]:
    """Return what limits the predictions, one sentence each."""
    said = [
        f"{clean(what_if.names.get(lock, f'lock {lock}'))}: holds that began without a wait are not"
        f" seen. The others take {percent(share)} of the time, and these are replayed."
        for lock, share in what_if.partly_seen.items()
        if what_if.predictions
    ]
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
