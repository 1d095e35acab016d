"""Locks that threads kept at their end, as soon as the kernel shows that the threads are gone.

The library notes such a misuse when it collects the ended thread. This may be long after the end.
Until then the thread's block still has its held list.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Misuse, MisuseKind
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import HeldRecord, LockRow
from locktop.collector.shm.reader import RawThread, Reader, Reading
from locktop.collector.sources.preload.stack_table import StackFrames

_ROBUST = 16  # a bit of a mutex's __kind (glibc, nptl/pthreadP.h)
_NOT_COLLECTED = frozenset({lib.LT_THREAD_LIVE, lib.LT_THREAD_EXITING})


class _KeptLock(NamedTuple):
    tid: int
    birth: int
    lock: int
    site: int


class KeptLocks:
    """The locks that ended threads kept, of threads that the library has not collected yet."""

    def __init__(self, reader: Reader, frames: StackFrames, clock: Clock) -> None:
        self._reader = reader
        self._frames = frames
        self._clock = clock
        self._noticed: dict[_KeptLock, int] = {}  # ticks

    def add_to(
        self,
        noted: Sequence[Misuse],
        reading: Reading,
        alive: Container[int],
        rows: Mapping[int, LockRow],
        tasks: KernelThreads,
    ) -> tuple[Misuse, ...]:
        """Return the misuses with those of threads that were not collected, the oldest first.

        Args:
            noted: the misuses that the library noted, read before ``reading``. The library marks
                a block as collected before it notes the misuses, so none is counted twice.
            reading: the reading of this scan.
            alive: the threads that the kernel showed after that reading.
            rows: the locks, by id.
            tasks: queries the kernel whether a thread, or the whole process, ends. To end with
                the process is no misuse.
        """
        ticks_by_kept = {
            kept: self._noticed.get(kept, reading.now)
            for thread in self._ended_threads(reading, alive, tasks)
            for kept in _kept_locks(thread, self._reader.held_list(thread), rows)
        }
        if ticks_by_kept.keys() - self._noticed.keys() and tasks.is_process_ending():
            ticks_by_kept = {
                kept: ticks for kept, ticks in ticks_by_kept.items() if kept in self._noticed
            }
        self._noticed = ticks_by_kept
        if not ticks_by_kept:
            return tuple(noted)
        entries: dict[object, Misuse] = {self._key(misuse): misuse for misuse in noted}
        for kept, ticks in ticks_by_kept.items():
            key = kept.lock, kept.site
            entry = entries.get(key)
            if entry is not None:
                entries[key] = replace(entry, count=entry.count + 1)
            elif len(entries) < lib.LT_MISUSES:
                entries[key] = Misuse(
                    kind=MisuseKind.KEPT_AT_END,
                    lock=kept.lock,
                    tid=kept.tid,
                    other=0,
                    stack=self._frames.site_id(kept.site),
                    count=1,
                    ago_s=self._clock.seconds(max(0, reading.now - ticks)),
                )
        return tuple(sorted(entries.values(), key=lambda misuse: -misuse.ago_s))

    def _ended_threads(
        self, reading: Reading, alive: Container[int], tasks: KernelThreads
    ) -> Iterator[RawThread]:
        for thread in reading.threads:
            if not thread.held or thread.block.state not in _NOT_COLLECTED:
                continue
            tid = thread.block.tid
            is_newest = reading.newest[tid].block.birth == thread.block.birth
            if not is_newest or (tid not in alive and not tasks.states([tid])[tid]):
                yield thread

    def _key(self, misuse: Misuse) -> object:
        """Return the key of the entry for a misuse: kept locks are one for each lock and call."""
        if misuse.kind is not MisuseKind.KEPT_AT_END:
            return misuse
        addresses = self._frames.addresses(misuse.stack) if misuse.stack else ()
        return misuse.lock, addresses[0] if addresses else 0


def _kept_locks(
    thread: RawThread, held: Sequence[HeldRecord], rows: Mapping[int, LockRow]
) -> Iterator[_KeptLock]:
    """Yield the locks that the thread certainly kept, as is_kept() in account/misuse.c does."""
    for entry in held:
        row = rows.get(entry.lock) if entry.lock else None
        if row is None or row.destroyed or row.foreign_releases:
            continue
        if row.kind == lib.LT_KIND_MUTEX and row.type & _ROBUST:
            continue
        yield _KeptLock(thread.block.tid, thread.block.birth, entry.lock, entry.site)
