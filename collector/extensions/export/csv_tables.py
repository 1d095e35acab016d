"""Tables as CSV (RFC 4180): each single wait, the locks, or the threads. Times are nanoseconds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from locktop.collector.extensions.export.frame_words import function_name
from locktop.collector.extensions.export.trace_words import LockWords, thread_name
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.files import encoded
from locktop.collector.render.words import probable_holder

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.model import Frame

#: Spreadsheets take a text that begins so for a formula, which may run commands.
_FORMULA = ("=", "+", "-", "@")
_FLUSH_AT = 1 << 16
#: Function, file, line, and all functions of a stack.
_SourceColumns = tuple[str, str, int | None, str]

WAIT_COLUMNS = (
    "began_ns", "wait_ns", "hold_ns", "tid", "thread", "lock", "lock_name", "kind", "holder",
    "function", "file", "line", "stack", "idle", "timed_out", "goes_on", "from_scans",
)  # fmt: skip
_LOCK_COLUMNS = (
    "id", "address", "kind", "name", "acquisitions", "contended", "trylock_failed", "wait_ns",
    "idle_ns", "wait_max_ns", "hold_ns", "hold_timed", "hold_max_ns", "holders", "waiters",
    "holders_probable", "readers",
)  # fmt: skip
_THREAD_COLUMNS = (
    "tid", "name", "alive", "state", "waiting_for", "waiting_ns", "holds", "wait_ns", "cpu_ns",
    "acquisitions", "contended",
)  # fmt: skip


def render_waits(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the waits in order of their begin. Raises LocktopError."""
    return _table(WAIT_COLUMNS, wait_rows(export_input))


def wait_rows(export_input: ExportInput) -> Iterator[Sequence[Any]]:
    """Yield a row of each wait with the columns of ``WAIT_COLUMNS``; ``stack`` has all functions,
    innermost first."""
    words = LockWords()
    for part in export_input.parts():
        words.add(part.snapshot)
        columns_of_stacks: dict[int, _SourceColumns] = {}
        for wait in part.waits:
            record = wait.record
            if record.stack not in columns_of_stacks:
                columns_of_stacks[record.stack] = _source_columns(part.frames(record.stack))
            yield (
                record.began_ns, record.wait_ns, record.hold_ns, record.tid,
                thread_name(part.threads, record.tid), record.lock,
                words.plain_name(record.lock), str(record.kind), record.holder or None,
                *columns_of_stacks[record.stack], int(wait.idle), int(record.timed_out),
                int(wait.is_open), int(record.is_sampled),
            )  # fmt: skip


def _source_columns(frames: tuple[Frame, ...]) -> _SourceColumns:
    own = innermost_own_frame(frames)
    stack = " < ".join(map(function_name, frames))
    if own is None:
        return "", "", None, stack
    return function_name(own), own.path, own.line, stack


def render_locks(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the locks in the order of a snapshot."""
    rows = (
        (
            lock.id, f"{lock.address:#x}", str(lock.kind), lock.name, lock.acquisitions,
            lock.contended, lock.trylock_failed, _ns(lock.wait_s), _ns(lock.idle_s),
            _ns(lock.wait_max_s), _ns(lock.hold_s), lock.hold_timed, _ns(lock.hold_max_s),
            " ".join(map(str, lock.holders)), " ".join(map(str, lock.waiters)),
            " ".join(map(str, probable_holder.tids(lock))), lock.readers or None,
        )
        for lock in export_input.snapshot.locks
        if export_input.with_idle or not lock.idle
    )  # fmt: skip
    return _table(_LOCK_COLUMNS, rows)


def render_threads(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the threads by tid."""
    rows = (
        (
            thread.tid, thread.name, int(thread.alive), str(thread.state),
            wait.lock if (wait := thread.waiting_for) is not None else None,
            _ns(wait.duration_s) if wait is not None else None,
            " ".join(str(held.lock) for held in thread.holds),
            _ns(sum(thread.wait_s.values())), _ns(thread.cpu_s), thread.acquisitions,
            thread.contended,
        )
        for thread in export_input.snapshot.threads
    )  # fmt: skip
    return _table(_THREAD_COLUMNS, rows)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_text(cell) if isinstance(cell, str) else cell for cell in row])
        if buffer.tell() > _FLUSH_AT:
            yield encoded(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
    yield encoded(buffer.getvalue())


def _text(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
