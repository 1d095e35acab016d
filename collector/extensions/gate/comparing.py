"""Chooses the lock classes that matter, and puts their figures of all runs side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from locktop.collector.extensions.gate.model import ClassVerdict, Comparison, GateResult, Quantity
from locktop.collector.extensions.gate.run_figures import ClassFigures, ClassKey, ProgramRun
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.units import counted, percent

#: The least part of all waits, or of all blame, with which a class counts.
_MIN_SHARE = 0.01
#: The part of lost records from which a note says so.
_MANY_LOST = 0.01

_Runs = Sequence[ProgramRun]


def baseline_runs(baseline: GateResult) -> list[ProgramRun]:
    """Return the runs of A of an earlier gate, without their waits."""
    runs: list[dict[ClassKey, ClassFigures]] = []
    for entry in baseline.comparisons:
        for number, value in enumerate(entry.a_s):
            if number == len(runs):
                runs.append({})
            if value is not None:
                key = entry.kind, entry.name
                others = runs[number].get(key, ClassFigures()).values
                runs[number][key] = ClassFigures(values={**others, entry.quantity: value})
    return [ProgramRun(classes) for classes in runs]


def shares(runs: _Runs) -> dict[ClassKey, float]:
    """Return the part of all waits of each class, or of all blame if that is more, in all runs."""
    waits, blame = defaultdict[ClassKey, float](float), defaultdict[ClassKey, float](float)
    for run in runs:
        for key, figures in run.classes.items():
            waits[key] += figures.wait_s
            blame[key] += figures.blame_s
    all_waits, all_blame = sum(waits.values()), sum(blame.values())
    return {
        key: max(waits[key] / (all_waits or 1.0), blame[key] / (all_blame or 1.0)) for key in waits
    }


def choose(a: _Runs, b: _Runs) -> tuple[list[ClassKey], list[str]]:
    """Return the classes to compare, the greatest share first, and a note on each other one.

    Both programs count alike, so the choice favours neither.
    """
    by_share = shares([*a, *b])
    chosen, notes = [], []
    for key in sorted(by_share, key=by_share.__getitem__, reverse=True):
        if by_share[key] < _MIN_SHARE:
            break
        held = [[Quantity.HOLD in _figures(run, key).values for run in runs] for runs in (a, b)]
        if all(map(all, held)):
            chosen.append(key)
        else:
            parts = [
                f"{sum(is_held)} of {counted(len(is_held), 'run')} of {side}"
                for side, is_held in zip("AB", held, strict=True)
            ]
            notes.append(f"left out: {name_with_kind(*key)}, held in {' and '.join(parts)}")
    return chosen, notes


def notes_on_runs(runs: _Runs) -> Iterator[str]:
    """Yield what the figures of these runs lack."""
    if nameless := max((run.nameless for run in runs), default=0):
        yield f"left out: up to {counted(nameless, 'lock')} without a name in a run"
    lost, arrived = sum(run.lost for run in runs), sum(run.records for run in runs)
    if lost > _MANY_LOST * (lost + arrived):
        part = percent(lost / (lost + arrived))
        yield f"{part} of the records were lost; a larger LOCKTOP_RING keeps more"


def why_nothing_counts(a: _Runs, b: _Runs) -> str:
    """Return why there is no class to compare, although the runs succeeded."""
    for side, runs in (("A", a), ("B", b)):
        if not any(Quantity.HOLD in entry.values for run in runs for entry in run.classes.values()):
            return (
                f"no hold of a lock with a name was recorded in the runs of {side}; only the first"
                " process is measured, so a script must `exec` the program"
            )
    if not any(entry.wait_s for run in (*a, *b) for entry in run.classes.values()):
        return "no thread waited for a lock, so no hold matters"
    return "no lock class is held in every run"


def comparisons(keys: Sequence[ClassKey], a: _Runs, b: _Runs, with_waits: bool) -> list[Comparison]:
    """Return the figures of all runs by class, without a verdict.

    Args:
        keys: the classes.
        a, b: the runs.
        with_waits: whether the waits count for the gate.
    """
    by_share = shares([*a, *b])
    return [
        Comparison(
            name=key[1],
            kind=key[0],
            quantity=quantity,
            gates=with_waits or quantity is Quantity.HOLD,
            share=by_share.get(key, 0.0),
            a_s=tuple(_figures(run, key).values.get(quantity) for run in a),
            b_s=tuple(_figures(run, key).values.get(quantity) for run in b),
            change=None,
            verdict=ClassVerdict.UNCLEAR,
        )
        for quantity in Quantity
        for key in keys
    ]


def _figures(run: ProgramRun, key: ClassKey) -> ClassFigures:
    return run.classes.get(key, ClassFigures())
