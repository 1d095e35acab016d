"""Where the waiting comes from, as a caller/callee summary report of Visual Studio's profiler.

One group of rows for each function: ``Root``, then its callers, then its callees. Waits are written
as samples, times as elapsed time in milliseconds. Locks are functions of the module ``[lock]``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    SourceLine,
    Step,
    StepKind,
    Wing,
    most_first,
)
from locktop.collector.render.profiles.profile import Profile, Weight, WeightUnit
from locktop.collector.render.profiles.vsperf_report import LOCK_MODULE

_BEHIND = (
    "Source File", "Function Line Number", "Module Name", "Module Path", "Function Address",
    "Root Function Name", "Process Name", "Process ID",
)  # fmt: skip
_SAMPLES = (
    "Inclusive Samples", "Exclusive Samples", "Inclusive Samples %", "Exclusive Samples %",
)  # fmt: skip
_TIMES = (
    "Elapsed Inclusive Time", "Elapsed Exclusive Time", "Elapsed Inclusive Time %",
    "Elapsed Exclusive Time %",
)  # fmt: skip


def render(profile: Profile, weight: Weight, idle: bool) -> str:
    """Return the report of a snapshot; with ``idle`` waits for work are added to it."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    titles = _TIMES if weight.unit is WeightUnit.SECONDS else _SAMPLES
    # Its reports end every line with a comma, that of the titles too.
    out.write(",".join(["Type", "Function Name", *titles, *_BEHIND, ""]) + "\r\n")
    for row in _Rows(profile, weight, idle).rows():
        writer.writerow([*row, ""])
    return out.getvalue()


class _Rows:
    def __init__(self, profile: Profile, weight: Weight, idle: bool) -> None:
        self._profile = profile
        self._idle = idle
        self._factor = 1000.0 if weight.unit is WeightUnit.SECONDS else 1.0
        self._groups = profile.butterflies(weight.name)
        root = profile.tree(weight.name)
        self._whole = root.value + (root.idle if idle else 0.0)

    def rows(self) -> Iterator[list[str | float]]:
        for group in sorted(self._groups.values(), key=_group_order):
            value = self._value(group)
            if value <= 0:
                continue
            yield self._row("Root", group.step, group, value, self._own(group))
            for caller in group.callers:
                if self._value(caller) > 0:
                    alone = self._value(caller) if _is_end(group.step) else 0.0
                    yield self._row("Caller", group.step, caller, self._value(caller), alone)
            for callee in group.callees:
                if self._value(callee) > 0:
                    alone = self._value(callee) if _is_end(callee.step) else 0.0
                    yield self._row("Callee", group.step, callee, self._value(callee), alone)

    def _value(self, entry: Butterfly | Wing) -> float:
        return entry.value + (entry.idle if self._idle else 0.0)

    def _own(self, group: Butterfly) -> float:
        """Return the waits of the lock itself. A wait inside a function goes to the lock, which is
        a function of its own here."""
        return self._value(group) if _is_end(group.step) else 0.0

    def _row(
        self, kind: str, root: Step, entry: Butterfly | Wing, value: float, own: float
    ) -> list[str | float]:
        line = entry.location or SourceLine("", 0)
        process = self._profile.process
        return [
            kind, entry.step.name, *self._figures(value, own), line.file, line.line,
            LOCK_MODULE if entry.step.kind is StepKind.LOCK else entry.step.module, "",
            f"{entry.step.number:#x}", root.name, process.comm, process.pid,
        ]  # fmt: skip

    def _figures(self, value: float, own: float) -> list[float]:
        whole = self._whole or 1.0
        figures = [round(figure * self._factor, 6) for figure in (value, own)]
        shares = [round(100 * figure / whole, 2) for figure in (value, own)]
        return [int(figure) if figure == int(figure) else figure for figure in figures] + shares


def _is_end(step: Step) -> bool:
    return step.kind is StepKind.LOCK


def _group_order(group: Butterfly) -> tuple[float, float, Step]:
    return most_first(Wing(group.step, group.value, group.idle))
