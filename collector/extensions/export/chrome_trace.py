"""A trace for chrome://tracing and the viewers that read its JSON ("Trace Event Format").

Times are microseconds with three digits behind the point, so no nanosecond is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from locktop.collector.extensions.export.frame_words import function_name
from locktop.collector.extensions.export.nested_slices import Slice, rows
from locktop.collector.extensions.export.trace_words import LockWords, thread_name
from locktop.collector.model import TimedWait

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.trace_parts import TracePart


def _microseconds(ns: int) -> msgspec.Raw:
    return msgspec.Raw(f"{ns // 1000}.{ns % 1000:03d}".encode())


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the trace in pieces. Raises LocktopError if the waits cannot be read."""
    return _ChromeWriter(export_input).render()


class _ChromeWriter:
    def __init__(self, export_input: ExportInput) -> None:
        self._input = export_input
        self._pid = export_input.snapshot.process.pid
        self._words = LockWords()
        self._frames: dict[tuple[str, str, int], int] = {}  # function, module, parent
        self._names: dict[int, str] = {}  # written names of threads
        self._begin_ns = 0
        self._ids = 0

    def render(self) -> Iterator[bytes]:
        yield b'{"displayTimeUnit": "ns", "traceEvents": [\n'
        process = self._input.snapshot.process
        first = {"ph": "M", "pid": self._pid, "tid": 0, "name": "process_name",
                 "args": {"name": process.comm}}  # fmt: skip
        yield msgspec.json.encode(first)
        for part in self._input.parts():
            self._words.add(part.snapshot)
            if part.is_first:
                starts = [wait.record.began_ns for wait in part.waits]
                self._begin_ns = min([part.from_ns, *starts])
            for event in self._events(part):
                event["pid"] = self._pid
                yield b",\n" + msgspec.json.encode(event)
        yield b'\n], "stackFrames": {\n'
        for number, (key, frame) in enumerate(self._frames.items()):
            function, module, parent = key
            entry = {"name": function, "category": module}
            entry |= {"parent": str(parent)} if parent else {}
            comma = b",\n" if number else b""
            yield b'%s"%d": %s' % (comma, frame, msgspec.json.encode(entry))
        begin = {"process": self._input.title, "began_ns": str(self._begin_ns)}
        yield b'\n}, "otherData": %s}\n' % msgspec.json.encode(begin)

    def _time(self, time_ns: int) -> msgspec.Raw:
        return _microseconds(max(time_ns - self._begin_ns, 0))

    def _events(self, part: TracePart) -> Iterator[dict[str, Any]]:
        for tid, name in part.threads.items():
            if self._names.get(tid, "") != name or tid not in self._names:
                self._names[tid] = name
                yield {"ph": "M", "tid": tid, "name": "thread_name",
                       "args": {"name": thread_name(part.threads, tid)}}  # fmt: skip
        yield from self._waits(part)
        yield from self._holds(part)
        yield from self._flows(part)
        yield from self._counters(part)
        for notable in part.notables:
            yield {"ph": "i", "tid": notable.tid, "ts": self._time(notable.time_ns),
                   "s": "t" if notable.tid else "p", "name": f"{notable.kind}: {notable.text}",
                   "cat": "alert"}  # fmt: skip

    def _waits(self, part: TracePart) -> Iterator[dict[str, Any]]:
        by_thread: dict[int, list[Slice[TimedWait]]] = {}
        for wait in part.waits:
            entry = Slice(wait.record.began_ns, wait.record.got_ns, wait)
            by_thread.setdefault(wait.record.tid, []).append(entry)
        for tid, slices in by_thread.items():
            for row, entry in rows(slices):
                wait = entry.content
                event = {
                    "name": self._words.wait(wait),
                    "cat": "idle" if wait.idle else "lock",
                    "tid": tid,
                    "ts": self._time(entry.from_ns),
                    "args": {"lock": self._words.name(wait.record.lock), "goes on": wait.is_open},
                }
                frame = self._stack(part, wait.record.stack)
                event |= {"sf": frame} if frame else {}
                if not row:
                    yield event | {"ph": "X", "dur": _microseconds(entry.to_ns - entry.from_ns)}
                    continue
                # Slices of a thread must nest; those with an id need not.
                yield event | {"ph": "b", "id": self._next_id()}
                yield {"ph": "e", "id": self._ids, "name": event["name"], "cat": event["cat"],
                       "tid": tid, "ts": self._time(entry.to_ns)}  # fmt: skip

    def _holds(self, part: TracePart) -> Iterator[dict[str, Any]]:
        for record in part.holds:
            event = {"name": self._words.hold(record.lock), "cat": "hold", "tid": record.tid,
                     "id": self._next_id()}  # fmt: skip
            yield event | {"ph": "b", "ts": self._time(record.got_ns)}
            yield event | {"ph": "e", "ts": self._time(record.end_ns)}

    def _flows(self, part: TracePart) -> Iterator[dict[str, Any]]:
        for flow in part.flows:
            if flow.released_ns is None:
                continue
            released_ns = min(flow.released_ns, flow.woken_ns)
            name = self._words.name(flow.lock)
            event = {"name": name, "cat": "hand-over", "id": self._next_id()}
            for phase, tid, time_ns, what in (
                ("s", flow.from_tid, released_ns, "released"),
                ("f", flow.to_tid, flow.woken_ns, "got"),
            ):
                # An arrow begins and ends in a slice.
                position = {"tid": tid, "ts": self._time(time_ns)}
                yield position | {"ph": "X", "dur": 0, "cat": "hand-over", "name": f"{what} {name}"}
                yield event | position | {"ph": phase, "bp": "e"}

    def _counters(self, part: TracePart) -> Iterator[dict[str, Any]]:
        for lock, time_ns, count in part.waiter_counts():
            yield {"ph": "C", "tid": 0, "ts": self._time(time_ns), "id": str(lock),
                   "name": f"waiters of {self._words.name(lock)}",
                   "args": {"threads": count}}  # fmt: skip

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _stack(self, part: TracePart, stack: int) -> int:
        """Return the number of the innermost frame of a stack; 0: the stack is not known."""
        parent = 0
        for frame in reversed(part.frames(stack)):
            key = function_name(frame), frame.module, parent
            parent = self._frames.setdefault(key, len(self._frames) + 1)
        return parent
