"""The performance counters of the thread whose details are on the screen."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import PerfCounter, PerfCounters, Switches
from locktop.tui.views.cells import count, duration, exact, percent
from locktop.tui.views.detail_parts import labelled
from locktop.tui.views.styled_line import Line


def switches_line(switches: Switches) -> Line:
    """How often the thread lost its CPU."""
    parts = [f"{exact(switches.voluntary)} to sleep", f"{exact(switches.involuntary)} put off"]
    if switches.migrations is not None:
        parts.append(f"{exact(switches.migrations)} to another cpu")
    return labelled("switches", ", ".join(parts))


def counter_lines(counted: PerfCounters) -> Iterator[Line]:
    """The figures, then by reason the counters that are not available."""
    figures = [_figure(counter) for counter in counted.counters if counter.total is not None]
    figures += _per_cycle(counted)
    if figures:
        yield labelled(
            "counted", ", ".join(figures), (f", in {duration(counted.duration_s)}", "dim")
        )
    reasons: dict[str, list[str]] = {}
    for counter in counted.counters:
        if counter.total is None:
            reasons.setdefault(counter.why, []).append(counter.name)
    label = "" if figures else "counted"
    for why, names in reasons.items():
        yield labelled(label, (f"{', '.join(names)}: n/a, {why}", "dim"))
        label = ""


def _figure(counter: PerfCounter) -> str:
    total = counter.total or 0.0
    what = duration(total) if counter.unit == "s" else count(total)
    rate = f"{percent(counter.per_s)}" if counter.unit == "s" else f"{count(counter.per_s)}/s"
    doubt = f", {counter.why}" if counter.why else ""
    return f"{counter.name} {what} ({rate}{doubt})"


def _per_cycle(counted: PerfCounters) -> list[str]:
    rates = {
        counter.name: counter.per_s for counter in counted.counters if counter.total is not None
    }
    cycles, instructions = rates.get("cycles", 0.0), rates.get("instructions", 0.0)
    return [f"{instructions / cycles:.2f} instructions a cycle"] if cycles and instructions else []
