"""Results of gates made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.extensions.gate.decision import judge, outcome
from locktop.collector.extensions.gate.model import (
    ClassVerdict,
    Comparison,
    GateOutcome,
    GateResult,
    GateSide,
    Quantity,
)
from locktop.collector.model import Kind

#: Markup of several languages, quotes, control codes, a mention, a link, and a long tail.
HOSTILE = (
    "</testcase>]]><!--&amp; \"'`` ` | \\| \\ **b** _i_ ~~s~~ <script>x</script> [a](http://b.c)"
    " @user #1 www.d.e $x$\t\x1b[31m\x00\x9b\u202e\ufffe\udc80\n# head " + "long" * 1024
)


def comparison(
    a: Sequence[float | None],
    b: Sequence[float | None],
    name: str = "g_lock",
    quantity: Quantity = Quantity.HOLD,
) -> Comparison:
    """Return the figures of one class by run, not judged yet."""
    return Comparison(
        name=name,
        kind=Kind.MUTEX,
        quantity=quantity,
        gates=quantity is Quantity.HOLD,
        share=0.5,
        a_s=tuple(a),
        b_s=tuple(b),
        change=None,
        verdict=ClassVerdict.UNCLEAR,
    )


def result(*comparisons: Comparison, name: str = "cmd") -> GateResult:
    """Return the result of a gate that ends after the runs of ``comparisons``."""
    entries = judge(comparisons, 0.025, 0.05, True)
    runs = len(entries[0].a_s) if entries else 0
    return GateResult(
        taken_at="2026-11-21T09:59:00Z",
        duration_s=20.0,
        a=GateSide((name, "--old")),
        b=GateSide((name, "--new"), ("X=1",)),
        is_paired=True,
        max_runs=12,
        a_runs=runs,
        b_runs=runs,
        min_change=0.05,
        outcome=outcome(entries),
        comparisons=entries,
        notes=(f"left out: {name}",),
    )


STEADY = (1e-3, 1.01e-3, 0.99e-3, 1e-3, 1.01e-3, 1e-3)
LONGER = (1.3e-3, 1.31e-3, 1.29e-3, 1.3e-3, 1.29e-3, 1.31e-3)
NOISY = (1e-3, 3e-3, 0.5e-3, 2e-3, 4e-3, 1e-3)
SAME = result(comparison(STEADY, STEADY[::-1]), comparison(STEADY, NOISY, quantity=Quantity.WAIT))
WORSE = result(comparison(STEADY, LONGER), comparison(STEADY, STEADY[::-1], "g_other"))
UNCLEAR = result(comparison(STEADY, NOISY))
NOTHING = GateResult(
    taken_at=SAME.taken_at,
    duration_s=0.1,
    a=SAME.a,
    b=SAME.b,
    is_paired=True,
    max_runs=12,
    a_runs=0,
    b_runs=0,
    min_change=0.05,
    outcome=GateOutcome.NOTHING,
    reason="run 1 of A: no such program: x",
)
