"""For what threads wait, as far as samples and the process's memory tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import NamedTuple

from locktop.collector.linux import futex, process_memory
from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind
from locktop.collector.sources.sampling import nptl_objects
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, Object
from locktop.collector.sources.sampling.once_runners import Runners
from locktop.collector.sources.sampling.sampler import Sample

#: Of these only the owner may change while a thread sleeps; what the others are stays.
_OWNED = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.FUTEX, Kind.ONCE})
#: Nothing is said of these when they do not look like one any more.
_OVER = frozenset({Kind.FUTEX, Kind.BARRIER, Kind.JOIN, Kind.MUTEX})
_MAX_KEPT = 4096  # mutexes


class ObjectWait(NamedTuple):  # one for each thread that moves, in each sample
    """A thread that sleeps in a futex call."""

    tid: int
    life: int  # of the thread: see Sample
    seq: int  # of the sleep
    since: float  # first seen: time.monotonic()
    futex: FutexWait
    what: Object  # of Kind.FUTEX where it cannot be told


class ObjectWaits:
    """Reads them, sample after sample."""

    def __init__(
        self,
        pid: int,
        glibc: int,
        is_once: Callable[[int], bool],
        waits_at: Callable[[int], bool] = lambda pc: True,
    ) -> None:
        """``glibc``, ``is_once``, ``waits_at``: see glibc_objects.told()."""
        self._pid = pid
        self._glibc = glibc
        self._is_once = is_once
        self._waits_at = waits_at
        #: Who runs the routines that are waited for, as far as known.
        self.runners: Runners = {}
        self._samples: Mapping[int, Sample] = {}
        self._known: dict[int, ObjectWait] = {}
        self._at: dict[int, ObjectWait] = {}  # one of them by the address of what it is for
        self._asked: dict[int, FutexWait] = {}  # by tid: those that are told anew in each sample
        self._told: dict[int, Object] = {}  # by address of the word, in the sample before
        self._mutexes: dict[int, Object] = {}  # by address, whenever they were known
        #: What lay around each then, and what it was known to be by that alone.
        self._seen: dict[FutexWait, tuple[bytes, Object | None]] = {}
        #: By address of the word: the tid of an owner that has ended, and the sleeps at that time.
        self._left: dict[int, tuple[int, set[int]]] = {}

    def of(
        self,
        samples: Mapping[int, Sample],
        still_sleeps: Callable[[Sample], bool],
        newcomers: Set[int] = frozenset(),
    ) -> dict[int, ObjectWait]:
        """Return the waits by tid. ``still_sleeps`` tells whether a thread was on no CPU since,
        ``newcomers`` are the tids of threads that were not there before."""
        if newcomers:
            self._note_left_by(newcomers)
        if newcomers or samples.keys() != self._samples.keys():
            self._seen = {}  # whether an id is one of a thread may tell an object
        found = self._going_on(samples)
        objects = self._objects(set(self._asked.values()), samples)
        if self._left:
            self._without_former_owners(
                objects, [(wait.address, samples[tid].seq) for tid, wait in self._asked.items()]
            )
        for tid, wait in list(self._asked.items()):
            sample, known, what = samples[tid], found.get(tid), objects[wait]
            # Whoever has what it waits for got it after its sample, unless it took it twice. That
            # the kernel refuses; it gives the lock to a thread that may not run for long.
            if what.owner == tid and (wait.inherits or not still_sleeps(sample)):
                found.pop(tid, None)
                continue
            if known is None or (known.what is not what and known.what != what):
                found[tid] = ObjectWait(tid, sample.life, sample.seq, sample.since, wait, what)
            if what.kind not in _OWNED:
                del self._asked[tid]
        self._known = found
        self._at = {}
        return found

    def owners(self, addresses: Iterable[int], samples: Mapping[int, Sample]) -> dict[int, int]:
        """Return who has the locks at these addresses now, as long as somebody waits there and it
        is known. ``samples``: the last ones."""
        self._at = self._at or {one.what.address: one for one in self._known.values()}
        waits = {address: self._at[address].futex for address in addresses if address in self._at}
        read = self._memory([wait.address for wait in waits.values()])
        found = {}
        for (address, wait), context in zip(waits.items(), read, strict=True):
            _, what = self._alone(wait, context, samples)
            if what is not None and (owner := self._run(what, samples).owner):
                found[address] = owner
        return found

    def _going_on(self, samples: Mapping[int, Sample]) -> dict[int, ObjectWait]:
        """Those of the sample before; a thread that sleeps otherwise now is asked for what."""
        before, found = self._samples, self._known.copy()
        for tid in before.keys() - samples.keys():
            found.pop(tid, None)
            self._asked.pop(tid, None)
        for sample in [one for tid, one in samples.items() if before.get(tid) is not one]:
            earlier = before.get(sample.tid)
            if earlier is not None and earlier.seq == sample.seq:
                continue
            found.pop(sample.tid, None)
            self._asked.pop(sample.tid, None)
            wait = futex.parse_wait(self._pid, sample.call) if sample.call is not None else None
            if wait is not None:
                self._asked[sample.tid] = wait
        self._samples = samples
        return found

    def _objects(
        self, waits: set[FutexWait], tids: Mapping[int, Sample]
    ) -> dict[FutexWait, Object]:
        addresses = sorted({wait.address for wait in waits})
        context = dict(zip(addresses, self._memory(addresses), strict=True))
        seen: dict[FutexWait, tuple[bytes, Object | None]] = {}
        for wait in waits:
            seen[wait] = self._alone(wait, context[wait.address], tids)
        found = {
            wait: self._run(what or self._as_before(wait, context[wait.address]), tids)
            for wait, (_, what) in seen.items()
        }
        self._seen = seen
        self._told = {wait.address: what for wait, what in found.items()}
        if len(self._mutexes) > _MAX_KEPT:
            self._mutexes.clear()
        self._mutexes.update(
            (address, what) for address, what in self._told.items() if what.kind is Kind.MUTEX
        )
        return found

    def _alone(
        self, wait: FutexWait, context: bytes, tids: Mapping[int, Sample]
    ) -> tuple[bytes, Object | None]:
        """What is told by that which lies around the word, with that."""
        known = self._seen.get(wait)
        if known is None or known[0] != context:
            known = (
                context,
                nptl_objects.told(wait, context, tids, self._glibc, self._is_once, self._waits_at),
            )
        return known

    def _run(self, what: Object, samples: Mapping[int, Sample]) -> Object:
        """With the thread that runs the routine, if it has slept on since that was found."""
        if what.kind is not Kind.ONCE or what.address not in self.runners:
            return what
        tid, seq = self.runners[what.address]
        sample = samples.get(tid)
        asleep = sample is not None and sample.seq == seq
        return what._replace(owner=tid) if asleep else what

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
                objects[wait] = what._replace(owner=0)

    def _as_before(self, wait: FutexWait, context: bytes) -> Object:
        """Between two owners a lock does not look like one."""
        mutex, known = self._mutexes.get(wait.address), self._told.get(wait.address)
        if mutex is not None and nptl_objects.is_between_owners(mutex, wait, context):
            return mutex._replace(owner=0)
        if known is not None and known.kind not in _OVER:
            return known._replace(owner=0, readers=0)
        unknown = Object(Kind.FUTEX, wait.address, shared=not wait.private)
        return known if known == unknown else unknown  # the same object as long as nothing changes

    def _memory(self, addresses: list[int]) -> list[bytes]:
        """What lies around each. What lies before it may be another mapping, or none: then what can
        be read is filled up, with what no object has there."""
        wanted = [piece for address in addresses for piece in _pieces(address)]
        read = iter(process_memory.read_many(self._pid, wanted))
        found = []
        for address in addresses:
            if len(_pieces(address)) == 1:
                found.append(next(read))
                continue
            before, after = next(read), next(read)
            found.append((before or b"\xff" * BEFORE) + after if after else b"")
        return found


def _pieces(address: int) -> tuple[tuple[int, int], ...]:
    """One where all lies in one page, else the part before the word and the one from it on."""
    if (
        address % process_memory.PAGE >= BEFORE
        and address % process_memory.PAGE + AFTER <= process_memory.PAGE
    ):
        return ((address - BEFORE, BEFORE + AFTER),)
    return (address - BEFORE, BEFORE), (address, AFTER)
