"""For what threads wait, as far as samples and the process's memory tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from locktop.collector import futex, glibc_objects, memory
from locktop.collector.futex import FutexWait
from locktop.collector.glibc_objects import AFTER, BEFORE, Object
from locktop.collector.model import Kind
from locktop.collector.once_waits import Runners
from locktop.collector.samples import Sample

#: Of these only the owner may change while a thread sleeps; what the others are stays.
_OWNED = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.FUTEX, Kind.ONCE})
#: Nothing is said of these when they do not look like one any more.
_OVER = frozenset({Kind.FUTEX, Kind.BARRIER, Kind.JOIN, Kind.MUTEX})
_MOST_KEPT = 4096  # mutexes


@dataclass(frozen=True, slots=True)
class OutsideWait:
    """A thread that sleeps in a futex call."""

    tid: int
    life: int  # of the thread: see Sample
    seq: int  # of the sleep
    since: float  # first seen: time.monotonic()
    futex: FutexWait
    what: Object  # of Kind.FUTEX where it cannot be told


class OutsideWaits:
    """Reads them, sample after sample."""

    def __init__(self, pid: int, glibc: int, is_once: Callable[[int], bool]) -> None:
        """``glibc``, ``is_once``: see glibc_objects.told()."""
        self._pid = pid
        self._glibc = glibc
        self._is_once = is_once
        #: Who runs the routines that are waited for, as far as known.
        self.runners: Runners = {}
        self._known: dict[int, OutsideWait] = {}
        self._told: dict[int, Object] = {}  # by address of the word, in the sample before
        self._mutexes: dict[int, Object] = {}  # by address, whenever they were known

    def of(
        self, samples: Mapping[int, Sample], still_sleeps: Callable[[Sample], bool]
    ) -> dict[int, OutsideWait]:
        """Return the waits by tid. ``still_sleeps`` tells whether a thread was on no CPU since."""
        found: dict[int, OutsideWait] = {}
        asked: dict[int, FutexWait] = {}
        for tid, sample in samples.items():
            known = self._known.get(tid)
            if known is not None and known.seq == sample.seq:
                if known.what.kind in _OWNED:
                    asked[tid] = known.futex
                else:
                    found[tid] = known
            elif sample.call is not None:
                wait = futex.of(self._pid, sample.call)
                if wait is not None:
                    asked[tid] = wait
        objects = self._objects(set(asked.values()), samples)
        for tid, wait in asked.items():
            sample, known = samples[tid], self._known.get(tid)
            what = objects[wait]
            # Whoever has what it waits for got it after its sample, unless it took it twice. That
            # the kernel refuses; it gives the lock to a thread that may not run for long.
            if what.owner == tid and (wait.inherits or not still_sleeps(sample)):
                continue
            if known is not None and known.seq == sample.seq and known.what == what:
                found[tid] = known
                continue
            found[tid] = OutsideWait(tid, sample.life, sample.seq, sample.since, wait, what)
        self._known = found
        return found

    def owner(self, address: int, samples: Mapping[int, Sample]) -> int:
        """Return who has the lock at an address now, as long as somebody waits there; 0 nobody, or
        it is not known. ``samples``: the last ones."""
        wait = next((one for one in self._known.values() if one.what.address == address), None)
        if wait is None:
            return 0
        (around,) = self._memory([wait.futex.address])
        found = glibc_objects.told(wait.futex, around, samples, self._glibc, self._is_once)
        return self._run(found, samples).owner if found is not None else 0

    def _objects(
        self, waits: set[FutexWait], tids: Mapping[int, Sample]
    ) -> dict[FutexWait, Object]:
        addresses = sorted({wait.address for wait in waits})
        around = dict(zip(addresses, self._memory(addresses), strict=True))
        found = {
            wait: self._run(
                glibc_objects.told(wait, around[wait.address], tids, self._glibc, self._is_once)
                or self._as_before(wait, around[wait.address]),
                tids,
            )
            for wait in waits
        }
        self._told = {wait.address: what for wait, what in found.items()}
        if len(self._mutexes) > _MOST_KEPT:
            self._mutexes.clear()
        self._mutexes.update(
            (address, what) for address, what in self._told.items() if what.kind is Kind.MUTEX
        )
        return found

    def _run(self, what: Object, samples: Mapping[int, Sample]) -> Object:
        """With the thread that runs the routine, if it has slept on since that was found."""
        if what.kind is not Kind.ONCE or what.address not in self.runners:
            return what
        tid, seq = self.runners[what.address]
        sample = samples.get(tid)
        asleep = sample is not None and sample.seq == seq
        return replace(what, owner=tid) if asleep else what

    def _as_before(self, wait: FutexWait, around: bytes) -> Object:
        """Between two owners a lock does not look like one."""
        mutex, known = self._mutexes.get(wait.address), self._told.get(wait.address)
        if mutex is not None and glibc_objects.is_between_owners(mutex, wait, around):
            return replace(mutex, owner=0)
        if known is not None and known.kind not in _OVER:
            return replace(known, owner=0, readers=0)
        return Object(Kind.FUTEX, wait.address, shared=not wait.private)

    def _memory(self, addresses: list[int]) -> list[bytes]:
        """What lies around each. What lies before it may be another mapping, or none: then what can
        be read is filled up, with what no object has there."""
        halves = [
            half for address in addresses for half in ((address - BEFORE, BEFORE), (address, AFTER))
        ]
        read = memory.words(self._pid, halves)
        return [
            (before or b"\xff" * BEFORE) + after if after else b""
            for before, after in zip(read[::2], read[1::2], strict=True)
        ]
