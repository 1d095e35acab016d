"""The line of the source that the details of the monitor are about."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence

from locktop.collector.model import Frame, Lock, is_library_wrapper, is_standard_library
from locktop.collector.render.words import lock_order
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.screens.deadlock_panel import reports_of

_Stack = Sequence[Frame]


def thread_line(index: SnapshotIndex, tid: int) -> tuple[str, int] | None:
    """The file and the line where a thread waits, else where it took its last lock."""
    return _first_line(_stacks_of_thread(index, tid))


def lock_line(index: SnapshotIndex, lock: Lock) -> tuple[str, int] | None:
    """The file and the line where the holder took a lock, else where the lock was waited for."""
    return _first_line(_stacks_of_lock(index, lock))


def deadlock_line(index: SnapshotIndex, row: int) -> tuple[str, int] | None:
    """The file and the line where the first thread of a deadlock waits; ``row`` 0: of any."""
    return _first_line(
        member.stack for report in reports_of(index, row) for member in report.circle
    )


def lock_order_line(index: SnapshotIndex, row: int) -> tuple[str, int] | None:
    """The file and the line of the first edge of a potential deadlock; ``row`` 0: of any."""
    cycles = lock_order.not_there(index.snapshot)
    chosen = cycles[row - 1 : row] if row else cycles
    return _first_line(index.stack(edge.stack) for cycle in chosen for edge in cycle.edges)


def _stacks_of_thread(index: SnapshotIndex, tid: int) -> Iterator[_Stack]:
    thread = index.threads.get(tid)
    if thread is None:
        return
    if thread.waiting_for is not None:
        yield index.stack(thread.waiting_for.stack)
        yield _site(index, thread.waiting_for.site)
    for held in reversed(thread.holds):
        yield _site(index, held.site)


def _stacks_of_lock(index: SnapshotIndex, lock: Lock) -> Iterator[_Stack]:
    for tid in lock.holders:
        held = index.held(tid, lock.id)
        if held is not None:
            yield _site(index, held.site)
    if lock.holder_activity is not None:
        yield index.stack(lock.holder_activity.stack)
    for waited in lock.wait_stacks:
        for part in index.wait_parts(waited):
            yield index.stack(part.stack)
    for tid in lock.waiters:
        yield from _stacks_of_thread(index, tid)


def _site(index: SnapshotIndex, address: int) -> _Stack:
    frame = index.snapshot.sites.get(address)
    return (frame,) if frame is not None else ()


def _first_line(stacks: Iterator[_Stack]) -> tuple[str, int] | None:
    """The line of the innermost own frame, of the first stack with one; else of any frame.

    Frames whose file is on this machine come first: an interpreter's own files seldom are.
    """
    own: tuple[str, int] | None = None
    other: tuple[str, int] | None = None
    for stack in stacks:
        for frame in stack:
            if not frame.file:
                continue
            line = (frame.path, frame.line or 0)
            if is_standard_library(frame) or is_library_wrapper(frame):
                other = other or line
            elif os.path.isabs(frame.path) and os.path.isfile(frame.path):
                return line
            else:
                own = own or line
    return own or other
