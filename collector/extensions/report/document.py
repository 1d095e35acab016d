"""The data of a report: the document of the snapshot, and what locktop says about the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from locktop import __version__
from locktop.collector.analysis import blocking_tree, deadlock_report
from locktop.collector.extension.discovery import extensions
from locktop.collector.extensions.report.incident import Incident
from locktop.collector.extensions.report.incident_graph import incident_graph
from locktop.collector.extensions.report.sentences import happened
from locktop.collector.extensions.report.time_parts import heat_document, lanes_document
from locktop.collector.model import CONTENTION_KINDS, BlockingTree, Kind, PatternName, Snapshot
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import deadlock, lock_order
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import hang, unit_takers, units, verdict
from locktop.collector.render.words.snapshot_index import LONG_WAIT_S, SnapshotIndex
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sources.levels import LEVELS

#: Columns of the text of extensions, which scrolls on a narrow screen.
_WIDTH = 100


def document(incident: Incident) -> dict[str, Any]:
    """Return the data as ``json.loads`` would return them.

    Raises:
        LocktopError: the snapshot of a stranger's recording has a figure that no document has.
    """
    snapshot = incident.span.snapshot
    context = ReportContext(snapshot, incident.span.before)
    tree = blocking_tree.find(snapshot)
    return {
        "format": "locktop.report",
        "version": 1,
        "sentences": happened(context, tree),
        "tone": _tone(snapshot, tree),
        "graph": msgspec.to_builtins(incident_graph(context, tree), enc_hook=str),
        "heat": heat_document(incident),
        "lanes": lanes_document(incident),
        "findings": [*map(_wrap, _findings(snapshot))],
        "potential": _wrap(lock_order.lines(snapshot)),
        "parts": [*map(_wrap, _parts(snapshot))],
        "lock_names": {lock.id: context.lock(lock.id) for lock in snapshot.locks},
        "lock_holders": _lock_holders(context.index),
        "contention_kinds": [kind.value for kind in Kind if kind in CONTENTION_KINDS],
        "pattern_words": {name.value: name.words for name in PatternName},
        "measured": [*_measurement_facts(incident, context)],
        "snapshot": snapshot_codec.document(snapshot, incident.span.before),
    }


def _lock_holders(index: SnapshotIndex) -> dict[int, str]:
    """Return who holds each lock, as the list of locks on the screen has it."""
    used = [lock for lock in index.locks.values() if lock.holders or lock.waiters]
    return {lock.id: text for lock in used if (text := index.holder_in_column(lock))}


def _wrap(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in wrapped(line, _WIDTH)]


def _tone(snapshot: Snapshot, tree: BlockingTree) -> str:
    """Return how the first sentence looks: "alert", "warning" or "calm"."""
    if verdict.is_deadlocked(snapshot):
        return "alert"
    waits = [thread.waiting_for for thread in snapshot.threads if thread.tid in tree.waiters]
    is_long = any(wait is not None and wait.duration_s >= LONG_WAIT_S for wait in waits)
    return "warning" if is_long or verdict.is_doubtful(snapshot) else "calm"


def _findings(snapshot: Snapshot) -> Iterator[list[str]]:
    """Yield the lines of each deadlock, of a hang, and of semaphores without units."""
    for report in () if hang.is_the_finding(snapshot) else deadlock_report.reports(snapshot):
        yield [*deadlock.lines(report)]
    if verdict.long_hang(snapshot) is not None:
        yield [*hang.lines(snapshot)]
    if taken := [*unit_takers.lines(snapshot)]:
        yield taken


def _parts(snapshot: Snapshot) -> Iterator[list[str]]:
    """Yield the text of each extension that has something to say, as what-if does."""
    for extension in extensions():
        if extension.report is not None:
            lines = [*extension.report(snapshot, _WIDTH)]
            if any(lines):
                yield lines


def _measurement_facts(incident: Incident, context: ReportContext) -> Iterator[tuple[str, str]]:
    """Yield facts with their headings: how the figures came about, and what is missing."""
    snapshot = context.snapshot
    process = snapshot.process
    yield "Process", f"{process.pid} {process.comm}: {' '.join(process.cmdline) or process.exe}"
    yield "Machine", snapshot.host
    yield "Taken", snapshot.taken_at
    yield "Process started", process.started_at or "not known"
    yield "Figures of", _span_words(context)
    yield "Source", "the library in the process" if not snapshot.is_sampled else "samples"
    yield "Level", f"{snapshot.level}: {_level_words(snapshot.level)}"
    yield "From the start", _start_words(snapshot)
    yield "Lost records", _lost_words(incident)
    if snapshot.locks_left_out:
        yield "Left out", units.counted(snapshot.locks_left_out, "lock") + " without contention"
    if snapshot.names_left:
        yield "Names", f"{snapshot.names_left} were not read in time"
    for note in (*snapshot.notes, *incident.notes):
        yield "Note", note
    yield "Made by", f"locktop {__version__}"


def _span_words(context: ReportContext) -> str:
    lasts = units.duration(context.span_s)
    if context.before is not None:
        return f"the span of {lasts} before this moment"
    return f"{lasts}, since " + ("it was sampled" if context.snapshot.is_sampled else "it counts")


def _start_words(snapshot: Snapshot) -> str:
    if snapshot.is_sampled:
        return "no: samples show the present alone"
    return "yes" if snapshot.complete else "no: earlier holds are not known"


def _level_words(name: str) -> str:
    does = {level.name: level.does for level in LEVELS}
    return does.get(name, "waits are estimates, and held locks are known in part")


def _lost_words(incident: Incident) -> str:
    if incident.span.snapshot.is_sampled:
        return "there are no records: samples miss short waits"
    if incident.heat is None:
        lost = incident.span.snapshot.lost_events
        return f"{units.exact(lost)} since the process started; the counters have all waits"
    lost = incident.heat.lost_records
    return f"{units.exact(lost)} of the span; the counters of locks and threads have all waits"
