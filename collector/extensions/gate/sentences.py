"""The sentences and the cells that all formats of a gate share. All of them are clean text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from locktop.collector.extensions.gate.model import (
    ClassVerdict,
    Comparison,
    GateOutcome,
    GateResult,
    GateSide,
    Quantity,
    RelativeChange,
)
from locktop.collector.render.words import units
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.sanitize import clean

#: The heads of the table.
HEADS = ("lock class", "A", "B", "change", "interval", "of waits", "verdict")


def headline(result: GateResult) -> str:
    """Return the answer in one sentence."""
    return f"{result.outcome}: {_answer(result)}"


def _answer(result: GateResult) -> str:
    if result.reason:
        return clean(result.reason)
    gating = [entry for entry in result.comparisons if entry.gates and entry.change is not None]
    if result.outcome is GateOutcome.WORSE:
        worse = [entry for entry in gating if entry.verdict is ClassVerdict.WORSE]
        return "; ".join(growth_text(entry) for entry in worse)
    if result.outcome is GateOutcome.RED_CONTROL:
        red = [entry for entry in gating if entry.is_control_red and entry.control is not None]
        return "; ".join(
            f"{subject(entry)} differs by {interval(entry.control)} between runs of A alone, so the"
            " machine changed meanwhile"
            for entry in red
        )
    if result.outcome is GateOutcome.UNCLEAR:
        unclear = [entry for entry in result.comparisons if entry.gates]
        unclear = [entry for entry in unclear if entry.verdict is ClassVerdict.UNCLEAR]
        return "; ".join(map(noise_text, unclear))
    if result.outcome is GateOutcome.SAME:
        most = max((entry.change.high for entry in gating if entry.change), default=0.0)
        classes = "1 lock class" if len(gating) == 1 else f"{len(gating)} lock classes"
        return f"{classes} compared; growth above {gain(max(most, 0.0))} is excluded"
    pairs = min(result.a_runs, result.b_runs) if result.is_paired else result.b_runs
    return f"there is no answer after {units.counted(pairs, 'pair')} of runs"


def growth_text(entry: Comparison) -> str:
    """Return how much longer a class is held or waited for."""
    return f"{subject(entry)} is longer by {gain(entry.change)} ({interval(entry.change)})"


def noise_text(entry: Comparison) -> str:
    """Return how large a change the noise of a class may hide."""
    if entry.change is None:
        return f"{subject(entry)} is in too few runs"
    return (
        f"the noise at {subject(entry)} may hide {gain(entry.change.high)}; longer runs or a"
        " quieter machine help"
    )


def subject(entry: Comparison) -> str:
    """Return the quantity and the class: ``the hold of mutex g_lock``."""
    return f"the {entry.quantity} of {class_name(entry)}"


def class_name(entry: Comparison) -> str:
    """Return the kind and the name of a class."""
    return clean(name_with_kind(entry.kind, entry.name))


def gain(change: RelativeChange | float | None) -> str:
    """Return a change in percent: ``+12 %``; ``-`` for None."""
    if change is None:
        return "-"
    value = change.estimate if isinstance(change, RelativeChange) else change
    if value >= 9.995:
        return f"{value + 1:.3g}x"
    return f"{100 * value:+.1f} %"


def interval(change: RelativeChange | None) -> str:
    """Return the bounds of a change: ``+9.1 % to +12 %``; ``-`` for None."""
    return "-" if change is None else f"{gain(change.low)} to {gain(change.high)}"


def command(side: GateSide) -> str:
    """Return a program with its variables, as a shell takes it."""
    import shlex

    return clean(" ".join([*side.environment, shlex.join(side.command)]))


def facts(result: GateResult) -> list[tuple[str, str]]:
    """Return what was compared, each with its heading."""
    runs = f"{result.a_runs} of A and {result.b_runs} of B, of at most {result.max_runs}"
    if not result.is_paired:
        runs = f"{result.b_runs} of B against a baseline; no pairs, so no control"
    return [
        ("A", command(result.a)),
        ("B", command(result.b)),
        ("runs", f"{runs}, in {units.duration(result.duration_s)}"),
        ("control", _control(result)),
    ]


def _control(result: GateResult) -> str:
    gating = [entry for entry in result.comparisons if entry.control is not None]
    if not gating:
        return "-"
    if any(entry.is_control_red for entry in gating):
        return "red: runs of A differ from runs of A"
    widest = max(gating, key=lambda entry: entry.control.high if entry.control else 0.0)
    return f"green: runs of A against runs of A {interval(widest.control)}"


def rows(result: GateResult, quantity: Quantity) -> list[tuple[str, ...]]:
    """Return the rows of the table of one quantity, below HEADS."""
    return [
        (
            class_name(entry),
            units.duration(_typical_s(entry.a_s)),
            units.duration(_typical_s(entry.b_s)),
            gain(entry.change),
            interval(entry.change),
            units.percent(entry.share),
            str(entry.verdict) if entry.gates else f"({entry.verdict})",
        )
        for entry in result.comparisons
        if entry.quantity is quantity
    ]


def _typical_s(values: Sequence[float | None]) -> float | None:
    figures = [value for value in values if value is not None]
    return median(figures) if figures else None


def titles(result: GateResult) -> list[tuple[Quantity, str]]:
    """Return the quantities that were compared, each with the title of its table."""
    texts = {
        Quantity.HOLD: "Median hold",
        Quantity.WAIT: "Mean wait of an acquisition",
    }
    gates = {entry.quantity for entry in result.comparisons if entry.gates}
    present = {entry.quantity for entry in result.comparisons}
    return [
        (quantity, text + ("" if quantity in gates else " (not part of the answer)"))
        for quantity, text in texts.items()
        if quantity in present
    ]
