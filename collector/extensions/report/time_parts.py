"""The parts of a report's data that have a time axis: the heat map and the lanes of threads."""

from __future__ import annotations

from typing import Any

import msgspec

from locktop.collector.extensions.report.incident import Incident
from locktop.collector.model import Lane, LaneState, TimeLine
from locktop.collector.render.documents.snapshot_codec import document as snapshot_document

#: The numbers of states in the data.
_STATES = {state: number for number, state in enumerate(LaneState)}
_US = 1000


def heat_document(incident: Incident) -> dict[str, Any] | None:
    """Return what the packed cells of the heat map mean, None without a heat map."""
    heat = incident.heat
    if heat is None:
        return None
    snapshot = incident.span.snapshot
    line = incident.time_line
    stacks = line.snapshot.stacks if line is not None else {}
    names = {thread.tid: thread.name for thread in snapshot.threads}
    if line is not None:
        names |= {lane.tid: lane.name for lane in line.lanes if lane.name}
    missing = {series.stack for series in heat.series} - snapshot.stacks.keys()
    return {
        "begin_ms": heat.begin_ns / 1e6,
        "cell_us": heat.cell_ns // _US,
        "cell_count": heat.cell_count,
        "step_size": heat.step_size,
        "value_size": heat.value_size,
        "series": [[series.lock, series.tid, series.stack, series.count] for series in heat.series],
        "thread_names": {series.tid: names.get(series.tid, "") for series in heat.series},
        "stacks": _frames(line, missing & stacks.keys()) if line is not None else {},
        "is_sampled": snapshot.is_sampled,
    }


def _frames(line: TimeLine, ids: set[int]) -> dict[str, Any]:
    """Return the frames of stacks as the document of a snapshot has them."""
    stacks = {id_: line.snapshot.stacks[id_] for id_ in ids}
    only = msgspec.structs.replace(line.snapshot, stacks=stacks, locks=(), threads=(), events=())
    frames: dict[str, Any] = snapshot_document(only)["stacks"]
    return frames


def lanes_document(incident: Incident) -> dict[str, Any] | None:
    """Return the lanes of threads, None without a time line.

    A lane is a flat list: duration in microseconds, number of the state, lock; again and again.
    """
    line = incident.time_line
    if line is None:
        return None
    return {
        "begin_ms": line.from_ns / 1e6,
        "span_us": (line.to_ns - line.from_ns) // _US,
        "states": [state.value for state in LaneState],
        "lanes": [
            {"tid": lane.tid, "name": lane.name, "spans": _spans(lane, line.from_ns)}
            for lane in line.lanes
        ],
        "notables": [
            {"at_us": (notable.time_ns - line.from_ns) // _US, "text": notable.text}
            for notable in line.notables
        ],
    }


def _spans(lane: Lane, begin_ns: int) -> list[int]:
    flat: list[int] = []
    end_us = 0
    for span in lane.spans:
        # The ends are rounded, not the durations, so that errors do not add up.
        until_us = (span.to_ns - begin_ns) // _US
        flat += (until_us - end_us, _STATES[span.state], span.lock)
        end_us = until_us
    return flat
