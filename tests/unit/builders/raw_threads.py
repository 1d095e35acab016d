"""Builders of what a reading of the shared memory shows: threads, waits, held locks and calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from support.shared_file import SharedFile

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThread
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.histograms import LineSums
from locktop.collector.shm.layout import HeldRecord, LockRow, ThreadBlock, WaitBlock
from locktop.collector.shm.reader import RawThread, Reading, newest_of_each_tid

SECOND = 1_000_000_000
#: The present of all these builders, in ticks of a nanosecond.
NOW = 1000 * SECOND
_FUTEX, _WAIT = 202, 0


def lock_row(**fields: int) -> LockRow:
    """Return a row of the lock table; fields that are not given are 0."""
    return LockRow(**{name: fields.get(name, 0) for name in LockRow._fields})


def wait_block(key: int, lock: int = 1, **fields: int) -> WaitBlock:
    """Return a wait; fields that are not given are 0, but for ``seq`` and ``since``."""
    values = {"seq": 2, "since": NOW, "key": key, "lock": lock} | fields
    return WaitBlock(**{name: values.get(name, 0) for name in WaitBlock._fields})


def held_record(key: int, lock: int = 1, **fields: int) -> HeldRecord:
    """Return an entry of a held list; fields that are not given are 0."""
    values = {"key": key, "lock": lock} | fields
    return HeldRecord(**{name: values.get(name, 0) for name in HeldRecord._fields})


def raw_thread(
    tid: int,
    wait: WaitBlock | None = None,
    held: Iterable[HeldRecord] = (),
    name: bytes = b"",
    uses: Iterable[layout.UseRecord] = (),
    **fields: int,
) -> RawThread:
    """Return a thread; ``fields`` are of its block, or ``now``, ``use_count`` or ``offset``."""
    values = {"state": lib.LT_THREAD_LIVE, "tid": tid, "birth": tid, "name": name} | fields
    packed = [layout.USE.pack(use) for use in uses]
    return RawThread(
        index=0,
        offset=fields.get("offset", 0),
        block=ThreadBlock(**{name: values.get(name, 0) for name in ThreadBlock._fields}),
        wait=wait,
        held=tuple(held),
        now=fields.get("now", NOW),
        acquisitions=0,
        contended=0,
        wait_ticks=(),
        use_count=fields.get("use_count", len(packed)),
        use_bytes=b"".join(packed),
    )


def by_tid(*threads: RawThread) -> dict[int, RawThread]:
    return {thread.block.tid: thread for thread in threads}


def reading(*threads: RawThread, rows: Iterable[LockRow] = (), **header: Any) -> Reading:
    """Return a reading at NOW; ``header`` are fields of the file's header."""
    file = SharedFile(1)
    return Reading(
        header=file.header_record()._replace(**header),
        control=layout.CONTROL.unpack(file.data, lib.LT_CONTROL_OFFSET),
        now=NOW,
        threads=list(threads),
        newest=newest_of_each_tid(list(threads)),
        rows=list(rows),
        sites={},
        charges={},
        locks_now=NOW,
        lines=LineSums(ffi.new("struct lt_thread_read *"), ffi.NULL, 1),
    )


def task(tid: int, state: str = "S") -> KernelThread:
    return KernelThread(name=f"t{tid}", state=state, cpu_s=0.0)


def tasks(*tids: int) -> Mapping[int, KernelThread]:
    return {tid: task(tid) for tid in tids}


def futex_wait(address: int) -> SystemCall:
    """Return the call in which a thread of x86-64 sleeps for the word at an address."""
    return SystemCall(_FUTEX, (address, _WAIT, 0, 0, 0, 0), 0, 0)
