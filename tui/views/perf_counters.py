"""The performance counters of the thread whose details are on the screen."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import Counter, Counters, Switches
from locktop.tui.views.cells import count, duration, exact, percent
from locktop.tui.views.detail_parts import labelled
from locktop.tui.views.styled_line import Line


def switches_line(switches: Switches) -> Line:
    """How often the thread lost its CPU."""
    parts = [f"{exact(switches.voluntary)} to sleep", f"{exact(switches.involuntary)} put off"]
    if switches.migrations is not None:
        parts.append(f"{exact(switches.migrations)} to another cpu")
    return labelled("switches", ", ".join(parts))


def counter_lines(counted: Counters) -> Iterator[Line]:
    """The figures, then by reason the counters that are not available."""
    figures = [_figure(one) for one in counted.counters if one.total is not None]
    figures += _per_cycle(counted)
    if figures:
        yield labelled(
            "counted", ", ".join(figures), (f", in {duration(counted.duration_s)}", "dim")
        )
    reasons: dict[str, list[str]] = {}
    for one in counted.counters:
        if one.total is None:
            reasons.setdefault(one.why, []).append(one.name)
    label = "" if figures else "counted"
    for why, names in reasons.items():
        yield labelled(label, (f"{', '.join(names)}: n/a, {why}", "dim"))
        label = ""


def _figure(one: Counter) -> str:
    total = one.total or 0.0
    what = duration(total) if one.unit == "s" else count(total)
    rate = f"{percent(one.per_s)}" if one.unit == "s" else f"{count(one.per_s)}/s"
    doubt = f", {one.why}" if one.why else ""
    return f"{one.name} {what} ({rate}{doubt})"


def _per_cycle(counted: Counters) -> list[str]:
    rates = {one.name: one.per_s for one in counted.counters if one.total is not None}
    cycles, instructions = rates.get("cycles", 0.0), rates.get("instructions", 0.0)
    return [f"{instructions / cycles:.2f} instructions a cycle"] if cycles and instructions else []
