"""Predictions as plain text: a page of their own, or a section of the report."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.whatif import sentences
from locktop.collector.extensions.whatif.model import WhatIf
from locktop.collector.model import Snapshot
from locktop.collector.render.words import units
from locktop.collector.render.words.plot import sparkline
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

#: Locks in the list of the pressure, and the least share that is worth a row.
_MAX_LOCKS, _LEAST_SHARE = 10, 0.001
_MAX_NAME, _MIN_NAME = 48, 12
_INDENT = 2
#: The heading of the shares of all threads' time that are waits for a lock.
_WAITS = "waits, of all threads' time"
_NO_CHANGE = "No thread waits for a lock for long, so no change of a lock is worth a prediction."


def render(found: WhatIf, snapshot: Snapshot, width: int = 100) -> str:
    """Return the page. No line is longer than ``width``; the lists need 70 columns."""
    return "\n".join(_lines(found, snapshot, width)) + "\n"


def summary(snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield the section of the text report, without the blank lines of the page."""
    found = snapshot.sections.get("whatif")
    if found is None:
        return
    yield ""
    until = f" until {found.taken_at}" if found.taken_at else ""
    yield f"WHAT A CHANGE WOULD GAIN, from {units.duration(found.span_s)} of records{until}"
    for line in _body(found, _names(found, snapshot), width - _INDENT):
        if line:
            yield f"{' ' * _INDENT}{line}"


def details(found: WhatIf, snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield the lines of the page beside the predictions and the refusal of all.

    The changes without a prediction come first.
    """
    names = _names(found, snapshot)
    if found.predictions and found.refused:
        yield from _refused(found, names, width)
        yield ""
    for text in _facts(found, names):
        yield from wrapped(text, width)
    if not (found.predictions or found.refusal or found.refused):
        yield ""
        yield from wrapped(_NO_CHANGE, width)
    yield from _pressure_and_notes(found, names, width)


def _names(found: WhatIf, snapshot: Snapshot) -> dict[int, str]:
    return {id_: clean(name) for id_, name in sentences.lock_names(found, snapshot).items()}


def _lines(found: WhatIf, snapshot: Snapshot, width: int) -> Iterator[str]:
    process = f"{clean(snapshot.process.comm)} (pid {snapshot.process.pid})"
    yield f"what if: {process}, {units.duration(found.span_s)} recorded at the level all"
    yield ""
    yield from _body(found, _names(found, snapshot), width)


def _body(found: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    for text in _facts(found, names):
        yield from wrapped(text, width)
    yield ""
    if found.predictions or not (found.refusal or found.refused):
        yield from _predictions(found, names, width)
    elif not found.refused:
        yield from wrapped(sentences.no_prediction(found), width)
    if found.predictions and found.refused:
        yield ""
    yield from _refused(found, names, width)
    yield from _pressure_and_notes(found, names, width)


def _refused(found: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    for one in found.refused:
        yield from wrapped(sentences.refused_change(one, found, names), width)


def _pressure_and_notes(found: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    rows = list(_pressure(found, names, width))
    if len(rows) > 1:
        yield ""
        yield from rows
    for note in sentences.notes(found):
        yield ""
        yield from wrapped(note, width)


def _facts(found: WhatIf, names: dict[int, str]) -> Iterator[str]:
    yield f"throughput   {found.rounds_per_s:,.0f} a second; {sentences.rounds(found, names)}"
    if found.parts and found.rounds_per_s:
        yield (
            f"replay       {sentences.gain(found.replayed)} without a change, in"
            f" {units.counted(found.parts, 'part')} of the span"
        )
    yield f"CPUs         {found.cpus_used:.2f} of {found.cpus} used"
    facts = [_level(found)]
    if found.recording_cost is not None:
        gain = sentences.gain(found.recording_cost)
        facts.insert(0, f"{gain} acquisitions a second while all was recorded")
    if any(facts):
        yield f"cost         {'; '.join(fact for fact in facts if fact)}"


def _level(found: WhatIf) -> str:
    """Return what became of the level; "" if the recording did not change it."""
    if not found.level_after or found.level_before == found.level_after == "all":
        return ""
    if found.level_after == found.level_before:
        return "the level is back"
    return f"the level is {found.level_after} now"


def _predictions(found: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
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
        yield _NO_CHANGE
        return
    heads = ("change", "throughput", "9 of 10 in", "at most")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    widths[0] = min(widths[0], max(_MIN_NAME, width - sum(widths[1:]) - 2 * len(widths[1:])))
    for row in (heads, *rows):
        cells = [clean(row[0], widths[0]).ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def _pressure(found: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    phases_width = max(found.parts, len("phases"))
    heads = f"  {_WAITS}  {'phases':{phases_width}}  critical path"
    room = min(_MAX_NAME, max(_MIN_NAME, width - len(heads)))
    yield f"{'lock':{room}}{heads}"
    listed = [one for one in found.pressure if max(one.wait_share, one.path_share) > _LEAST_SHARE]
    for one in listed[:_MAX_LOCKS]:
        name = names.get(one.lock, f"lock {one.lock}")[-room:]
        phases = f"{sparkline(one.wait_shares):{phases_width}}"
        yield (
            f"{name:{room}}  {units.percent(one.wait_share):>{len(_WAITS)}}  {phases}"
            f"  {units.percent(one.path_share):>13}"
        )
