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
#: The heading of the same in each part of the recorded time.
_OVER_TIME = "over time"
_NO_CHANGE = "No thread waits for a lock for long, so no change of a lock is worth a prediction."


def render(what_if: WhatIf, snapshot: Snapshot, width: int = 100) -> str:
    """Return the page. No line is longer than ``width``; the lists need 70 columns."""
    return "\n".join(_lines(what_if, snapshot, width)) + "\n"


def summary(snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield the section of the text report, without the blank lines of the page."""
    what_if = snapshot.sections.get("whatif")
    if what_if is None:
        return
    yield ""
    until = f" until {what_if.taken_at}" if what_if.taken_at else ""
    yield f"WHAT A CHANGE WOULD GAIN, from {units.duration(what_if.span_s)} of records{until}"
    for line in _body(what_if, _names(what_if, snapshot), width - _INDENT):
        if line:
            yield f"{' ' * _INDENT}{line}"


def details(what_if: WhatIf, snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield the lines of the page beside the predictions and the refusal of all.

    The changes without a prediction come first.
    """
    names = _names(what_if, snapshot)
    if what_if.predictions and what_if.refused:
        yield from _refusal_lines(what_if, names, width)
        yield ""
    for text in _facts(what_if, names):
        yield from wrapped(text, width)
    if not (what_if.predictions or what_if.refusal or what_if.refused):
        yield ""
        yield from wrapped(_NO_CHANGE, width)
    yield from _pressure_and_notes(what_if, names, width)


def _names(what_if: WhatIf, snapshot: Snapshot) -> dict[int, str]:
    return {id_: clean(name) for id_, name in sentences.lock_names(what_if, snapshot).items()}


def _lines(what_if: WhatIf, snapshot: Snapshot, width: int) -> Iterator[str]:
    process = f"{clean(snapshot.process.comm)} (pid {snapshot.process.pid})"
    yield f"what if: {process}, {units.duration(what_if.span_s)} recorded at the level all"
    yield ""
    yield from _body(what_if, _names(what_if, snapshot), width)


def _body(what_if: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    for text in _facts(what_if, names):
        yield from wrapped(text, width)
    yield ""
    if what_if.predictions or not (what_if.refusal or what_if.refused):
        yield from _predictions(what_if, names, width)
    elif not what_if.refused:
        yield from wrapped(sentences.no_prediction(what_if), width)
    if what_if.predictions and what_if.refused:
        yield ""
    yield from _refusal_lines(what_if, names, width)
    yield from _pressure_and_notes(what_if, names, width)


def _refusal_lines(what_if: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    for refused in what_if.refused:
        yield from wrapped(sentences.refused_change(refused, what_if, names), width)


def _pressure_and_notes(what_if: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    rows = list(_pressure(what_if, names, width))
    if len(rows) > 1:
        yield ""
        yield from rows
    for note in sentences.notes(what_if):
        yield ""
        yield from wrapped(note, width)


def _facts(what_if: WhatIf, names: dict[int, str]) -> Iterator[str]:
    unit = sentences.unit(what_if)
    which = sentences.rounds(what_if, names).removeprefix(unit)
    yield f"throughput   {what_if.rounds_per_s:,.0f} {unit} a second{which}"
    if what_if.parts and what_if.rounds_per_s:
        yield (
            f"replay       without a change {sentences.gain(what_if.replayed)} beside the"
            f" recording, in {units.counted(what_if.parts, 'part')} of the span"
        )
    yield f"CPUs         {what_if.cpus_used:.2f} of {what_if.cpus} used"
    facts = [_level(what_if)]
    if what_if.recording_cost is not None:
        gain = sentences.gain(what_if.recording_cost)
        facts.insert(0, f"the recording changed the acquisitions a second by {gain}")
    if any(facts):
        yield f"cost         {'; '.join(fact for fact in facts if fact)}"


def _level(what_if: WhatIf) -> str:
    """Return what became of the level; "" if the recording did not change it."""
    if not what_if.level_after or what_if.level_before == what_if.level_after == "all":
        return ""
    if what_if.level_after == what_if.level_before:
        return "the level is back"
    return f"the level is {what_if.level_after} now"


def _predictions(what_if: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    rows = [
        (
            sentences.change(prediction.change, names),
            sentences.gain(prediction.ratio),
            sentences.interval(prediction),
            sentences.gain(prediction.bound),
        )
        for prediction in what_if.predictions
    ]
    if not rows:
        yield _NO_CHANGE
        return
    heads = ("change", "throughput", sentences.LIKELY_RANGE, sentences.AT_MOST)
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    widths[0] = min(widths[0], max(_MIN_NAME, width - sum(widths[1:]) - 2 * len(widths[1:])))
    for row in (heads, *rows):
        cells = [clean(row[0], widths[0]).ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def _pressure(what_if: WhatIf, names: dict[int, str], width: int) -> Iterator[str]:
    phases_width = max(what_if.parts, len(_OVER_TIME))
    heads = f"  {_WAITS}  {_OVER_TIME:{phases_width}}  critical path"
    room = min(_MAX_NAME, max(_MIN_NAME, width - len(heads)))
    yield f"{'lock':{room}}{heads}"
    listed = [
        share
        for share in what_if.pressure
        if max(share.wait_share, share.path_share) > _LEAST_SHARE
    ]
    for share in listed[:_MAX_LOCKS]:
        name = names.get(share.lock, f"lock {share.lock}")
        name = name if len(name) <= room else f"…{name[1 - room :]}"
        phases = f"{sparkline(share.wait_shares):{phases_width}}"
        yield (
            f"{name:{room}}  {units.percent(share.wait_share):>{len(_WAITS)}}  {phases}"
            f"  {units.percent(share.path_share):>13}"
        )
