"""Predictions as a page of plain text for a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.format import units
from locktop.collector.format import whatif as sentences
from locktop.collector.format.plot import sparkline
from locktop.collector.format.wrap import wrapped
from locktop.collector.model import Snapshot, WhatIf
from locktop.collector.sanitize import clean

#: Locks in the list of the pressure, and the least share that is worth a row.
_MAX_LOCKS, _LEAST_SHARE = 10, 0.001
_MAX_NAME = 48


def render(found: WhatIf, snapshot: Snapshot, width: int = 100) -> str:
    """Return the page. No line is longer than ``width``, except those of the lists."""
    return "\n".join(_lines(found, snapshot, width)) + "\n"


def _lines(found: WhatIf, snapshot: Snapshot, width: int) -> Iterator[str]:
    names = {lock.id: clean(lock.name) for lock in snapshot.locks}
    process = f"{clean(snapshot.process.comm)} (pid {snapshot.process.pid})"
    yield f"what if: {process}, {units.duration(found.span_s)} recorded at the level all"
    yield ""
    for text in _facts(found, names):
        yield from wrapped(text, width)
    yield ""
    if found.refusal is not None:
        yield from wrapped(f"No prediction: {sentences.refusal(found)}.", width)
    else:
        yield from _predictions(found, names)
    rows = list(_pressure(found, names))
    if len(rows) > 1:
        yield ""
        yield from rows
    for note in sentences.notes(found):
        yield ""
        yield from wrapped(note, width)


def _facts(found: WhatIf, names: dict[int, str]) -> Iterator[str]:
    yield f"throughput   {found.rounds_per_s:,.0f} a second; {sentences.rounds(found, names)}"
    yield (
        f"replay       {sentences.gain(found.replayed)} without a change, in {found.parts} parts"
        " of the span"
    )
    yield f"CPUs         {found.cpus_used:.2f} of {found.cpus} used"
    if found.recording_cost is not None:
        yield (
            f"cost         {sentences.gain(found.recording_cost)} acquisitions a second while all"
            " was recorded; the level is back"
        )


def _predictions(found: WhatIf, names: dict[int, str]) -> Iterator[str]:
    rows = [
        (
            sentences.change(one.change, names),
            sentences.gain(one.ratio),
            sentences.interval(one),
            sentences.gain(one.bound),
        )
        for one in found.predictions
    ]
    if not rows:
        yield "No thread waits for a lock for long, so no change of a lock is worth a prediction."
        return
    heads = ("change", "throughput", "9 of 10 in", "at most")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def _pressure(found: WhatIf, names: dict[int, str]) -> Iterator[str]:
    yield f"{'lock':{_MAX_NAME}}  waits of all threads  {'phases':{found.parts}}  critical path"
    listed = [one for one in found.pressure if max(one.wait_share, one.path_share) > _LEAST_SHARE]
    for one in listed[:_MAX_LOCKS]:
        name = names.get(one.lock, f"lock {one.lock}")[-_MAX_NAME:]
        phases = f"{sparkline(one.wait_shares):{max(found.parts, len('phases'))}}"
        yield (
            f"{name:{_MAX_NAME}}  {units.percent(one.wait_share):>20}  {phases}"
            f"  {units.percent(one.path_share):>13}"
        )
