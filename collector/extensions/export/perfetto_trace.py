"""A trace for Perfetto (ui.perfetto.dev): TracePacket of perfetto's protos/perfetto/trace.

Waits lie on the track of their thread, holds on a child track for each lock, hand-overs are flows.
A wait has its call stack with its nanoseconds as weight, so the viewer draws a flame graph of the
waits of any selection. Slices have the names that its lock plugin knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.export.frame_words import function_name
from locktop.collector.extensions.export.nested_slices import Slice, edges, rows
from locktop.collector.extensions.export.trace_words import LockWords, thread_name
from locktop.collector.model import Flow, Frame, TimedWait, WaitRecord

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.trace_parts import TracePart

#: Clock ids of perfetto/common/builtin_clock.proto.
_REALTIME, _BOOTTIME = 1, 6
#: Bits of TracePacket.sequence_flags.
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_SEQUENCE = 1
_PROCESS_UUID = 1
#: Packets that are serialised at once.
_BATCH = 4096
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the trace in pieces.

    Raises:
        LocktopError: the library is not installed, or the waits cannot be read.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise LocktopError(
            "the format perfetto needs another package: pip install 'locktop[export]'"
        ) from None
    return _PerfettoWriter(perfetto_trace_pb2).render(export_input)


class _PerfettoWriter:
    def __init__(self, messages: Any) -> None:
        self._messages = messages
        self._trace = messages.Trace()
        self._words = LockWords()
        self._uuids: dict[tuple[str, int, int, int], int] = {}
        self._interned = _Interned()
        self._threads: dict[int, str] = {}
        self._flows = 0

    def render(self, export_input: ExportInput) -> Iterator[bytes]:
        self._write_head(export_input)
        for part in export_input.parts():
            self._words.add(part.snapshot)
            self._interned.begin_part()
            self._threads.update({tid: name for tid, name in part.threads.items() if name})
            if part.is_first:
                self._write_clock(part.from_ns)
            for write in (self._write_waits, self._write_holds, self._write_flows):
                for _ in write(part):
                    if len(self._trace.packet) >= _BATCH:
                        yield self._take_batch()
            self._write_counters(part)
            self._write_notables(part)
            yield self._take_batch()

    def _take_batch(self) -> bytes:
        data: bytes = self._trace.SerializeToString()
        self._trace = self._messages.Trace()
        return data

    # ---- the head, and tracks ----

    def _write_head(self, export_input: ExportInput) -> None:
        packet = self._packet()
        packet.sequence_flags = _STATE_CLEARED
        packet.trace_packet_defaults.timestamp_clock_id = _BOOTTIME
        process = export_input.snapshot.process
        descriptor = self._packet().track_descriptor
        descriptor.uuid = _PROCESS_UUID
        descriptor.process.pid = process.pid
        descriptor.process.process_name = process.comm
        descriptor.process.cmdline.extend(process.cmdline)
        self._pid = process.pid

    def _write_clock(self, time_ns: int) -> None:
        # The clock of the trace is real time: so traces of several processes lie side by side.
        clocks = self._packet().clock_snapshot.clocks
        for clock in (_BOOTTIME, _REALTIME):
            clocks.add(clock_id=clock, timestamp=time_ns)

    def _packet(self) -> Any:
        return self._trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)

    def _uuid(self, kind: str, first: int, second: int = 0, row: int = 0) -> tuple[int, Any]:
        """Return the id of a track, and its descriptor if the track is new."""
        key = kind, first, second, row
        if key in self._uuids:
            return self._uuids[key], None
        uuid = self._uuids[key] = _PROCESS_UUID + 1 + len(self._uuids)
        descriptor = self._packet().track_descriptor
        descriptor.uuid = uuid
        return uuid, descriptor

    def _thread_track(self, tid: int) -> int:
        uuid, new = self._uuid("thread", tid)
        if new is not None:
            new.thread.pid, new.thread.tid = self._pid, tid
            new.thread.thread_name = thread_name(self._threads, tid)
        return uuid

    def _child_track(self, kind: str, tid: int, lock: int, row: int) -> int:
        parent = self._thread_track(tid)
        uuid, new = self._uuid(kind, tid, lock, row)
        if new is not None:
            new.parent_uuid = parent
            what = f"{self._words.name(lock)} held" if kind == "hold" else "waits"
            new.name = f"{what} ({row + 1})" if row else what
        return uuid

    # ---- events ----

    def _event(self, time_ns: int, kind: int, track: int) -> Any:
        packet = self._packet()
        packet.timestamp = time_ns
        packet.sequence_flags = _NEEDS_STATE
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        return event

    def _name(self, event: Any, name: str, category: str) -> None:
        """Give the event that was written last a name and a category."""
        packet = self._trace.packet[-1]
        event.name_iid = self._interned.name(name, packet)
        event.category_iids.append(self._interned.category(category, packet))

    def _write_waits(self, part: TracePart) -> Iterator[None]:
        by_thread: dict[int, list[Slice[TimedWait]]] = {}
        for wait in part.waits:
            record = wait.record
            entry = Slice(record.began_ns, record.got_ns, wait)
            by_thread.setdefault(record.tid, []).append(entry)
        for tid, slices in by_thread.items():
            by_row: dict[int, list[Slice[TimedWait]]] = {}
            for row, entry in rows(slices):
                by_row.setdefault(row, []).append(entry)
            for row, row_slices in by_row.items():
                thread = self._thread_track(tid)
                track = self._child_track("wait", tid, 0, row) if row else thread
                for edge in edges(row_slices):
                    event = self._event(edge.time_ns, _END if edge.is_end else _BEGIN, track)
                    if not edge.is_end:
                        self._describe_wait(event, edge.content, part)
                    yield

    def _describe_wait(self, event: Any, wait: TimedWait, part: TracePart) -> None:
        record = wait.record
        self._name(event, self._words.wait(wait), "idle" if wait.idle else "lock")
        frames = part.frames(record.stack)
        if frames:
            packet = self._trace.packet[-1]
            event.callstack_iid = self._interned.callstack(record.stack, frames, packet)
            event.callstack_weight = record.wait_ns
        if wait.is_open or record.is_sampled or record.timed_out:
            note = event.debug_annotations.add(name="locktop")
            note.string_value = ", ".join(
                text
                for text, holds in (
                    ("goes on", wait.is_open),
                    ("known from scans", record.is_sampled),
                    ("timed out", record.timed_out),
                )
                if holds
            )

    def _write_holds(self, part: TracePart) -> Iterator[None]:
        by_lock_of_thread: dict[tuple[int, int], list[Slice[WaitRecord]]] = {}
        for record in part.holds:
            entry = Slice(record.got_ns, record.end_ns, record)
            by_lock_of_thread.setdefault((record.tid, record.lock), []).append(entry)
        for (tid, lock), slices in by_lock_of_thread.items():
            by_row: dict[int, list[Slice[WaitRecord]]] = {}
            for row, entry in rows(slices):
                by_row.setdefault(row, []).append(entry)
            for row, row_slices in by_row.items():
                track = self._child_track("hold", tid, lock, row)
                for edge in edges(row_slices):
                    event = self._event(edge.time_ns, _END if edge.is_end else _BEGIN, track)
                    if not edge.is_end:
                        self._name(event, self._words.hold(lock), "lock")
                    yield

    def _write_flows(self, part: TracePart) -> Iterator[None]:
        for flow in part.flows:
            if flow.released_ns is not None:
                self._write_flow(flow, min(flow.released_ns, flow.woken_ns))
                yield

    def _write_flow(self, flow: Flow, released_ns: int) -> None:
        self._flows += 1
        name = self._words.name(flow.lock)
        release = self._event(released_ns, _INSTANT, self._thread_track(flow.from_tid))
        self._name(release, f"released {name}", "lock")
        release.flow_ids.append(self._flows)
        taken = self._event(flow.woken_ns, _INSTANT, self._thread_track(flow.to_tid))
        self._name(taken, f"got {name}", "lock")
        taken.terminating_flow_ids.append(self._flows)

    def _write_counters(self, part: TracePart) -> None:
        for lock, time_ns, count in part.waiter_counts():
            uuid, new = self._uuid("counter", lock)
            if new is not None:
                new.parent_uuid = _PROCESS_UUID
                new.name = f"waiters of {self._words.name(lock)}"
                new.counter.unit = new.counter.UNIT_COUNT
            self._event(time_ns, _COUNTER, uuid).counter_value = count

    def _write_notables(self, part: TracePart) -> None:
        for notable in part.notables:
            track = self._thread_track(notable.tid) if notable.tid else _PROCESS_UUID
            event = self._event(notable.time_ns, _INSTANT, track)
            self._name(event, f"{notable.kind}: {notable.text}", "alert")


class _Interned:
    """Texts, frames and stacks that are written once. Packets refer to them by their numbers."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, object], int] = {}
        self._counts: dict[str, int] = {}
        self._stacks: dict[int, int] = {}

    def begin_part(self) -> None:
        """Forget which stack has which frames: the names of another part may be better."""
        self._stacks.clear()

    def name(self, text: str, packet: Any) -> int:
        """Return the number of the name of an event."""
        number, is_new = self._number("name", text)
        if is_new:
            packet.interned_data.event_names.add(iid=number, name=text)
        return number

    def category(self, text: str, packet: Any) -> int:
        """Return the number of a category."""
        number, is_new = self._number("category", text)
        if is_new:
            packet.interned_data.event_categories.add(iid=number, name=text)
        return number

    def callstack(self, stack: int, frames: tuple[Frame, ...], packet: Any) -> int:
        """Return the number of a call stack: ``stack``, its id, with these frames."""
        number = self._stacks.get(stack)
        if number is None:
            ids = tuple(self._frame(frame, packet) for frame in reversed(frames))
            number, is_new = self._number("callstack", ids)
            self._stacks[stack] = number
            if is_new:
                packet.interned_data.callstacks.add(iid=number, frame_ids=ids)
        return number

    def _frame(self, frame: Frame, packet: Any) -> int:
        number, is_new = self._number("frame", frame)
        if is_new:
            data = packet.interned_data
            entry = data.frames.add(iid=number, rel_pc=max(frame.offset, 0))
            entry.function_name_id = self._text("function_names", function_name(frame), data)
            if frame.module:
                entry.mapping_id = self._mapping(frame.module, data)
            if frame.file:
                entry.source_path_iid = self._text("source_paths", frame.path, data)
                entry.line_number = frame.line or 0
        return number

    def _mapping(self, module: str, data: Any) -> int:
        number, is_new = self._number("mapping", module)
        if is_new:
            path = self._text("mapping_paths", module, data)
            data.mappings.add(iid=number, path_string_ids=[path])
        return number

    def _text(self, field: str, text: str, data: Any) -> int:
        number, is_new = self._number(field, text)
        if is_new:
            getattr(data, field).add(iid=number, str=text.encode("utf-8", "replace"))
        return number

    def _number(self, kind: str, value: object) -> tuple[int, bool]:
        number = self._ids.get((kind, value))
        if number is not None:
            return number, False
        number = self._ids[kind, value] = self._counts[kind] = self._counts.get(kind, 0) + 1
        return number, True
