"""For what threads wait, as far as samples and the process's memory tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from locktop.collector import futex, glibc_objects, memory
from locktop.collector.futex import FutexWait
from locktop.collector.glibc_objects import AFTER, BEFORE, Object
from locktop.collector.model import Kind
from locktop.collector.samples import Sample

#: Of these only the owner may change while a thread sleeps; what the others are stays.
_OWNED = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.FUTEX})
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

    def __init__(self, pid: int, glibc: int) -> None:
        """``glibc``: see glibc_objects.told()."""
        self._pid = pid
        self._glibc = glibc
        self._known: dict[int, OutsideWait] = {}
        self._told: dict[int, Object] = {}  # by address of the word, in the sample before
        self._mutexes: dict[int, Object] = {}  # by address, whenever they were known
        #: By address of the word: the tid of an owner that has ended, and the sleeps at that time.
        self._left: dict[int, tuple[int, set[int]]] = {}

    def of(
        self,
        samples: Mapping[int, Sample],
        still_sleeps: Callable[[Sample], bool],
        newcomers: Set[int] = frozenset(),
    ) -> dict[int, OutsideWait]:
        """Return the waits by tid. ``still_sleeps`` tells whether a thread was on no CPU since,
        ``newcomers`` are the tids of threads that were not there before."""
        if newcomers:
            self._note_left_by(newcomers)
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
        if self._left:
            self._without_former_owners(
                objects, [(asked[t].address, samples[t].seq) for t in asked]
            )
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

    def _objects(
        self, waits: set[FutexWait], tids: Mapping[int, Sample]
    ) -> dict[FutexWait, Object]:
        addresses = sorted({wait.address for wait in waits})
        around = dict(zip(addresses, self._memory(addresses), strict=True))
        found = {
            wait: glibc_objects.told(wait, around[wait.address], tids, self._glibc)
            or self._as_before(wait, around[wait.address])
            for wait in waits
        }
        self._told = {wait.address: what for wait, what in found.items()}
        if len(self._mutexes) > _MOST_KEPT:
            self._mutexes.clear()
        self._mutexes.update(
            (address, what) for address, what in self._told.items() if what.kind is Kind.MUTEX
        )
        return found

    def _note_left_by(self, newcomers: Set[int]) -> None:
        """What was owned by those who had these tids before."""
        for known in self._known.values():
            if known.what.owner in newcomers:
                left = self._left.setdefault(known.futex.address, (known.what.owner, set()))
                left[1].add(known.seq)

    def _without_former_owners(
        self, objects: dict[FutexWait, Object], sleeps: Iterable[tuple[int, int]]
    ) -> None:
        """Whoever ended with a lock is named in it, also when another thread has its id: as long as
        nobody was woken who waited for it, it was not given back."""
        going_on: dict[int, set[int]] = {}
        for address, seq in sleeps:
            going_on.setdefault(address, set()).add(seq)
        self._left = {
            address: (owner, seqs)
            for address, (owner, seqs) in self._left.items()
            if seqs <= going_on.get(address, set())
        }
        for wait, what in objects.items():
            owner, _ = self._left.get(wait.address, (0, None))
            if owner and what.owner == owner:
                objects[wait] = replace(what, owner=0)

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
