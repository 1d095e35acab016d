"""Waits that the kernel knows of and the library does not: futex calls compiled into a program or a
runtime (OpenMP, Go), locks inside libc, and waits that began before anything was watched."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from msgspec.structs import replace

from locktop.collector.linux.threads import KernelThread, KernelThreads
from locktop.collector.model import Draft, ThreadState
from locktop.collector.shm import layout
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.shm.segment import SharedMemory

#: Threads asked in one look, some 10 us each. Those whose wait is known are not asked.
_MAX_ASKED = 64
_SEQ_AND_KEY = struct.Struct("=I4xQ")  # the head of struct lt_wait

_NOTE = (
    "some threads wait in futex calls that do not pass through the library (compiled in, as in"
    " OpenMP and Go, or inside libc, or begun before it watched): who has what they wait for is not"
    " known"
)


def waiters(
    found: Mapping[int, KernelThread],
    newest: Mapping[int, RawThread],
    tasks: KernelThreads,
    reader: Reader,
    memory: SharedMemory,
) -> tuple[int, ...]:
    """Return the threads that wait for something that cannot be seen, in order of tid; where many
    sleep, only of the first so many.

    ``found`` and ``newest`` are what the kernel and the library said in this look.
    """
    asked = [tid for tid in sorted(found) if _may_wait(found[tid], newest.get(tid))][:_MAX_ASKED]
    blocks = {tid: newest[tid] for tid in asked if tid in newest}
    before = {tid: _published(raw, memory) for tid, raw in blocks.items()}
    inside = [tid for tid in asked if tasks.sleeps_in(tid).startswith("futex")]
    # The library may have seen a wait begin meanwhile, and even end.
    arrived = reader.read_threads() if any(tid not in blocks for tid in inside) else {}
    return tuple(
        tid
        for tid in inside
        if (_saw_none(before[tid], blocks[tid], memory) if tid in blocks else tid not in arrived)
    )


def annotate(snapshot: Draft, waiters: tuple[int, ...]) -> None:
    """Fill in these threads: not idle, for nobody knows whether they wait for work or a holder."""
    if not waiters:
        return
    snapshot.threads = tuple(
        replace(thread, state=ThreadState.OTHER) if thread.tid in waiters else thread
        for thread in snapshot.threads
    )
    snapshot.unobserved_waiters = waiters
    if snapshot.level != "dormant":  # a dormant library observes no wait, which is said already
        snapshot.notes = (*snapshot.notes, _NOTE)


def _may_wait(task: KernelThread, raw: RawThread | None) -> bool:
    return task.state == "S" and (raw is None or raw.wait is None)


def _published(raw: RawThread, memory: SharedMemory) -> tuple[int, int]:
    """The thread's wait as the library says it now: its sequence number, its key or 0."""
    seq, key = _SEQ_AND_KEY.unpack(memory.read(raw.offset + layout.WAIT_AT, _SEQ_AND_KEY.size))
    return seq, key


def _saw_none(before: tuple[int, int], raw: RawThread, memory: SharedMemory) -> bool:
    seq, key = before
    return not seq & 1 and not key and _published(raw, memory) == before
