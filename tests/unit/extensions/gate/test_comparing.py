"""The lock classes that a gate compares, and the notes on the others."""

from __future__ import annotations

from unit.builders.gate_results import WORSE

from locktop.collector.extensions.gate import comparing
from locktop.collector.extensions.gate.model import Quantity
from locktop.collector.extensions.gate.run_figures import ClassFigures, ProgramRun
from locktop.collector.model import Kind

HOT, RARE, CAUSE = (Kind.MUTEX, "hot"), (Kind.RWLOCK, "rare"), (Kind.SPIN, "cause")
HELD = {Quantity.HOLD: 1e-3}


def run(lost: int = 0, nameless: int = 0, **waits: float) -> ProgramRun:
    """Return a run in which each class is held; ``waits`` are those of classes by name, seconds."""
    figures = {
        key: ClassFigures(values=HELD, wait_s=waits.get(key[1], 0.0), blame_s=0.0)
        for key in (HOT, RARE, CAUSE)
    }
    return ProgramRun(figures, records=1000, lost=lost, nameless=nameless)


def test_classes_with_a_hundredth_of_the_waits_count() -> None:
    chosen, notes = comparing.choose([run(hot=1.0, rare=0.005)], [run(hot=1.0, rare=0.02)])
    assert (chosen, notes) == ([HOT, RARE], [])
    chosen, _ = comparing.choose([run(hot=1.0, rare=0.005)], [run(hot=1.0, rare=0.005)])
    assert chosen == [HOT]


def test_a_class_that_causes_the_waits_of_others_counts() -> None:
    classes = {
        HOT: ClassFigures(values=HELD, wait_s=1.0),
        CAUSE: ClassFigures(values=HELD, blame_s=1.0),
    }
    chosen, _ = comparing.choose([ProgramRun(classes)], [ProgramRun(classes)])
    assert set(chosen) == {HOT, CAUSE}


def test_a_class_that_is_not_held_in_each_run_is_left_out() -> None:
    classes = {HOT: ClassFigures(values=HELD, wait_s=1.0)}
    b = ProgramRun({**classes, RARE: ClassFigures(values=HELD, wait_s=0.5)})
    chosen, notes = comparing.choose([ProgramRun(classes)] * 2, [b] * 2)
    assert chosen == [HOT]
    assert notes == ["left out: rwlock rare, held in 0 of 2 runs of A and 2 of 2 runs of B"]


def test_figures_of_all_runs_stand_side_by_side() -> None:
    waits = {Quantity.HOLD: 2e-3, Quantity.WAIT: 5e-4}
    a = [ProgramRun({HOT: ClassFigures(values=waits, wait_s=1.0)}), ProgramRun({})]
    hold, wait = comparing.comparisons([HOT], a, [run(hot=1.0)] * 2, with_waits=False)
    assert (hold.name, hold.kind, hold.gates, hold.share) == ("hot", Kind.MUTEX, True, 1.0)
    assert (hold.a_s, hold.b_s) == ((2e-3, None), (1e-3, 1e-3))
    assert (wait.gates, wait.a_s, wait.b_s) == (False, (5e-4, None), (None, None))


def test_notes_tell_what_the_runs_lack() -> None:
    assert list(comparing.notes_on_runs([run(), run()])) == []
    nameless, lost = comparing.notes_on_runs([run(nameless=2), run(lost=1000)])
    assert nameless == "left out: up to 2 locks without a name in a run"
    assert lost.startswith("33.3 % of the records were lost")


def test_the_reason_why_nothing_counts() -> None:
    none = ProgramRun({})
    assert "in the runs of A" in comparing.why_nothing_counts([none], [run()])
    assert "in the runs of B" in comparing.why_nothing_counts([run()], [none])
    assert comparing.why_nothing_counts([run()], [run()]).startswith("no thread waited")
    assert comparing.why_nothing_counts([run(hot=1.0)], [run()]) == (
        "no lock class is held in every run"
    )


def test_a_baseline_gives_back_its_runs() -> None:
    runs = comparing.baseline_runs(WORSE)
    assert len(runs) == 6
    assert {key[1] for key in runs[0].classes} == {"g_lock", "g_other"}
    values = [run.classes[Kind.MUTEX, "g_lock"].values[Quantity.HOLD] for run in runs]
    assert tuple(values) == WORSE.comparisons[0].a_s
