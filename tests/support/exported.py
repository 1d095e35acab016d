"""Readers of exported files, with libraries of the formats' own people or of nobody in locktop."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from support import pprof_rules

#: profile.proto of github.com/google/pprof: message -> fields as (name, number, type, repeated).
_PPROF = {
    "ValueType": [("type", 1, "int64", False), ("unit", 2, "int64", False)],
    "Label": [("key", 1, "int64", False), ("str", 2, "int64", False), ("num", 3, "int64", False)],
    "Sample": [
        ("location_id", 1, "uint64", True), ("value", 2, "int64", True),
        ("label", 3, "Label", True),
    ],
    "Mapping": [
        ("id", 1, "uint64", False), ("memory_start", 2, "uint64", False),
        ("memory_limit", 3, "uint64", False), ("file_offset", 4, "uint64", False),
        ("filename", 5, "int64", False), ("build_id", 6, "int64", False),
        ("has_functions", 7, "bool", False), ("has_filenames", 8, "bool", False),
        ("has_line_numbers", 9, "bool", False), ("has_inline_frames", 10, "bool", False),
    ],
    "Line": [("function_id", 1, "uint64", False), ("line", 2, "int64", False)],
    "Location": [
        ("id", 1, "uint64", False), ("mapping_id", 2, "uint64", False),
        ("address", 3, "uint64", False), ("line", 4, "Line", True),
    ],
    "Function": [
        ("id", 1, "uint64", False), ("name", 2, "int64", False),
        ("system_name", 3, "int64", False), ("filename", 4, "int64", False),
        ("start_line", 5, "int64", False),
    ],
    "Profile": [
        ("sample_type", 1, "ValueType", True), ("sample", 2, "Sample", True),
        ("mapping", 3, "Mapping", True), ("location", 4, "Location", True),
        ("function", 5, "Function", True), ("string_table", 6, "string", True),
        ("time_nanos", 9, "int64", False), ("duration_nanos", 10, "int64", False),
        ("period_type", 11, "ValueType", False), ("period", 12, "int64", False),
        ("default_sample_type", 14, "int64", False),
    ],
}  # fmt: skip
_FIELD = descriptor_pb2.FieldDescriptorProto


def _pprof_type() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package="pprof", syntax="proto3"
    )
    for name, fields in _PPROF.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            entry = message.field.add(name=field, number=number)
            entry.label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
            if kind in _PPROF:
                entry.type, entry.type_name = _FIELD.TYPE_MESSAGE, f".pprof.{kind}"
            else:
                entry.type = getattr(_FIELD, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message_type: type[Message] = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("pprof.Profile")
    )
    return message_type


def pprof(data: bytes) -> Any:
    """Return a profile that Pyroscope and Parca take as it is."""
    profile: Any = _pprof_type()()
    profile.ParseFromString(gzip.decompress(data))
    _check_no_unknown_fields(profile)
    pprof_rules.check(profile)
    return profile


def _check_no_unknown_fields(message: Any) -> None:
    # Serialising again drops nothing that is known, and keeps what is unknown at the end.
    before = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == before, "unknown fields"


class ReadSlice:
    """A slice of a trace."""

    def __init__(self, track: int, begin_ns: int, name: str, stack: tuple[str, ...]) -> None:
        self.track, self.begin_ns, self.name, self.stack = track, begin_ns, name, stack
        self.end_ns = 0
        self.weight = 0

    @property
    def ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns


class ReadTrace:
    """A Perfetto trace, read as its viewer reads it. The constructor checks what it demands."""

    def __init__(self, data: bytes) -> None:
        trace = Trace()
        trace.ParseFromString(data)
        _check_no_unknown_fields(trace)
        self.tracks: dict[int, Any] = {}
        self.slices: list[ReadSlice] = []
        self.instants: list[tuple[int, int, str]] = []  # track, time, name
        self.counters: dict[int, list[tuple[int, int]]] = {}
        self.flows: dict[int, list[int]] = {}  # times of both ends
        self.clocks: list[Any] = []
        self._tables: dict[str, dict[int, Any]] = {}
        events = [packet for packet in trace.packet if self._take(packet)]
        # The viewer sorts by time; packets of one time stay in their order.
        events.sort(key=lambda packet: packet.timestamp)
        self._open: dict[int, list[ReadSlice]] = {}
        for packet in events:
            self._read(packet)
        assert not any(self._open.values()), "a slice without an end"
        assert all(len(times) == 2 for times in self.flows.values()), "a flow lacks an end"

    def _take(self, packet: Any) -> bool:
        """Read all but events; return whether the packet has an event."""
        for field, entries in packet.interned_data.ListFields():
            table = self._tables.setdefault(field.name, {})
            for entry in entries:
                assert entry.iid not in table, "an id is defined twice"
                table[entry.iid] = entry
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in self.tracks
            assert not descriptor.parent_uuid or descriptor.parent_uuid in self.tracks
            self.tracks[descriptor.uuid] = descriptor
        if packet.HasField("clock_snapshot"):
            self.clocks.append(packet.clock_snapshot)
        if not packet.HasField("track_event"):
            return False
        event = packet.track_event
        assert event.track_uuid in self.tracks, "a track is used before it is described"
        if event.name_iid:
            assert event.name_iid in self._tables["event_names"]
        if event.callstack_iid:
            assert event.callstack_iid in self._tables["callstacks"]
        return True

    def _read(self, packet: Any) -> None:
        event, time_ns = packet.track_event, packet.timestamp
        name = self._tables["event_names"][event.name_iid].name if event.name_iid else ""
        stack = self._open.setdefault(event.track_uuid, [])
        for flow in (*event.flow_ids, *event.terminating_flow_ids):
            self.flows.setdefault(flow, []).append(time_ns)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            entry = ReadSlice(event.track_uuid, time_ns, name, self._stack(event.callstack_iid))
            entry.weight = event.callstack_weight
            stack.append(entry)
            self.slices.append(entry)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            assert stack, "an end without a begin"
            stack.pop().end_ns = time_ns
        elif event.type == TrackEvent.TYPE_INSTANT:
            self.instants.append((event.track_uuid, time_ns, name))
        else:
            assert event.type == TrackEvent.TYPE_COUNTER
            self.counters.setdefault(event.track_uuid, []).append((time_ns, event.counter_value))

    def _stack(self, number: int) -> tuple[str, ...]:
        if not number:
            return ()
        frames = [
            self._tables["frames"][id_] for id_ in self._tables["callstacks"][number].frame_ids
        ]
        names = self._tables["function_names"]
        return tuple(names[frame.function_name_id].str.decode() for frame in frames)

    def sum_ns(self, prefix: str) -> int:
        """Return the sum of the slices whose names begin so."""
        return sum(entry.ns for entry in self.slices if entry.name.startswith(prefix))


def chrome_sum_ns(data: bytes) -> int:
    """Return the nanoseconds of all contended waits of a Chrome trace."""
    trace, total, begins = json.loads(data, parse_float=str), 0, {}
    for event in trace["traceEvents"]:
        if event.get("cat") != "lock":
            continue
        if event["ph"] == "X":
            total += _ns(event["dur"])
        elif event["ph"] == "b":
            begins[event["id"]] = _ns(event["ts"])
        elif event["ph"] == "e":
            total += _ns(event["ts"]) - begins.pop(event["id"])
    assert not begins
    return total


def _ns(microseconds: str) -> int:
    whole, _, part = str(microseconds).partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0") or 0)


def csv_rows(data: bytes) -> list[dict[str, str]]:
    """Return the rows of a table."""
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def folded(data: bytes) -> Counter[str]:
    """Return the nanoseconds of each stack."""
    lines = (line.rpartition(" ") for line in data.decode().splitlines())
    return Counter({stack: int(ns) for stack, _, ns in lines})


def speedscope_profiles(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield each profile of a speedscope file with its nanoseconds."""
    for profile in json.loads(data)["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        yield profile["name"], profile["endValue"]
