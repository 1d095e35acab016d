"""The objects that threads wait for, read from samples and from the process's memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Set

from msgspec.structs import replace

from locktop.collector.linux import futex, process_memory
from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import Kind
from locktop.collector.model.kinds import FORGOTTEN_KINDS, OWNER_CHANGES_KINDS, TURNS_KINDS
from locktop.collector.sources.sampling import join_states, nptl_objects
from locktop.collector.sources.sampling.gil_waits import GilWaits
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, SyncObject
from locktop.collector.sources.sampling.once_runners import Runners
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample

_MAX_KEPT = 4096  # number of mutexes
#: CPU seconds from a wait to the next one of a thread that does nothing but wait.
_MAX_RENEWAL_S = 2e-4


class SampledWaitReader:
    """Reads the waits of each sample."""

    def __init__(
        self,
        pid: int,
        glibc: int,
        is_once: Callable[[int], bool],
        may_wait_at: Callable[[int], bool] = lambda pc: True,
    ) -> None:
        """See nptl_objects.recognise() for ``glibc``, ``is_once`` and ``may_wait_at``."""
        self._pid = pid
        self._glibc = glibc
        self._is_once = is_once
        self._waits_at = may_wait_at
        #: The known runners of the once routines that threads wait for.
        self.runners: Runners = {}
        #: Returns the present owner of the RLock of Python at whose word threads wait, 0 for none;
        #: None if they wait for another object.
        self.rlock_owner: Callable[[int], int | None] = lambda word: None
        self.gil_waits = GilWaits()
        self._samples: Mapping[int, Sample] = {}
        self._waits: dict[int, SampledWait] = {}
        self._by_address: dict[int, SampledWait] = {}  # one wait by the address of its object
        self._former: dict[int, tuple[SampledWait, Sample]] = {}  # by tid: ended by this sample
        self._reread: dict[int, FutexWait] = {}  # by tid: calls that are read again in each sample
        self._last_objects: dict[
            int, SyncObject
        ] = {}  # by address of the word, from the last sample
        self._mutexes: dict[int, SyncObject] = {}  # by address, from any sample
        #: The memory around each word, and the object recognised by that memory alone.
        self._cache: dict[FutexWait, tuple[bytes, SyncObject | None]] = {}
        #: By address of the word: the tid of an owner that has ended, and the sleeps at that time.
        self._left_by_ended: dict[int, tuple[int, set[int]]] = {}

    def read(
        self,
        samples: Mapping[int, Sample],
        still_sleeps: Callable[[Sample], bool],
        newcomers: Set[int] = frozenset(),
    ) -> dict[int, SampledWait]:
        """Return the waits by tid.

        Args:
            samples: the last sample.
            still_sleeps: whether a thread was on no CPU since its sample.
            newcomers: ids of threads that are new since the sample before.
        """
        self.gil_waits.note_turns(self._waits.values())
        if newcomers:
            self._note_left_by(newcomers)
        if newcomers or samples.keys() != self._samples.keys():
            self._cache = {}  # the set of thread ids decides which objects are recognised
        waits = self._ongoing(samples)
        objects = self._objects(set(self._reread.values()), samples)
        if self._left_by_ended:
            self._remove_former_owners(
                objects, [(wait.address, samples[tid].seq) for tid, wait in self._reread.items()]
            )
        for tid, wait in list(self._reread.items()):
            sample, ongoing, sync_object = samples[tid], waits.get(tid), objects[wait]
            # A thread that owns the object it waits for got it after its sample, or acquired it
            # twice. The kernel refuses a second acquisition, and gives such a lock to a thread that
            # may not run for long.
            if sync_object.owner == tid and (wait.inherits or not still_sleeps(sample)):
                waits.pop(tid, None)
                continue
            if ongoing is None or (
                ongoing.sync_object is not sync_object and ongoing.sync_object != sync_object
            ):
                waits[tid] = self._changed_wait(sample, wait, sync_object, ongoing)
            # Nothing but an owner changes during a sleep.
            if sync_object.kind not in OWNER_CHANGES_KINDS and not sync_object.recursive:
                del self._reread[tid]
        self._waits = waits
        self._by_address = {}
        return waits

    def _changed_wait(
        self,
        sample: Sample,
        futex_wait: FutexWait,
        sync_object: SyncObject,
        ongoing: SampledWait | None,
    ) -> SampledWait:
        """Return a wait that is new, or that is for an object which has changed."""
        wait = SampledWait(
            tid=sample.tid,
            life=sample.life,
            seq=sample.seq,
            since=sample.since,
            futex=futex_wait,
            sync_object=sync_object,
        )
        if ongoing is not None:
            return replace(
                wait,
                later_reads=_later_reads(ongoing, sync_object),
                renewals=ongoing.renewals,
                first_since=ongoing.first_since,
            )
        former, earlier = self._former.get(sample.tid, (None, None))
        if former is None or earlier is None or not _renews(wait, sample, former, earlier):
            return wait
        return replace(wait, renewals=former.renewals + 1, first_since=former.whole_since)

    def owners(self, addresses: Iterable[int], samples: Mapping[int, Sample]) -> dict[int, int]:
        """Return the present owners of the locks at these addresses, by address.

        Only locks with a waiter and a known owner are included.

        Args:
            addresses: addresses of locks.
            samples: the last sample.
        """
        self._by_address = self._by_address or {
            wait.sync_object.address: wait for wait in self._waits.values()
        }
        waits = {
            address: self._by_address[address].futex
            for address in addresses
            if address in self._by_address
        }
        read = self._memory([wait.address for wait in waits.values()])
        owners = {}
        for (address, wait), context in zip(waits.items(), read, strict=True):
            _, sync_object = self._recognise(wait, context, samples)
            if sync_object is not None and (owner := self._add_owner(sync_object, samples).owner):
                owners[address] = owner
        return owners

    def _ongoing(self, samples: Mapping[int, Sample]) -> dict[int, SampledWait]:
        """Return the waits of the sample before that go on; read the calls of all other sleeps."""
        before, waits = self._samples, self._waits.copy()
        self._former = {}
        for tid in before.keys() - samples.keys():
            waits.pop(tid, None)
            self._reread.pop(tid, None)
        for sample in [sample for tid, sample in samples.items() if before.get(tid) is not sample]:
            earlier, former = before.get(sample.tid), waits.get(sample.tid)
            if (
                earlier is not None
                and earlier.seq == sample.seq
                and (former is None or former.seq == sample.seq)
            ):
                continue
            waits.pop(sample.tid, None)
            self._reread.pop(sample.tid, None)
            wait = futex.parse_wait(self._pid, sample.call) if sample.call is not None else None
            if former is not None and self.gil_waits.goes_on(former, sample, wait):
                waits[sample.tid] = former
                continue
            if former is not None and former.futex.timed and earlier is not None:
                self._former[sample.tid] = former, earlier
            if wait is not None:
                self._reread[sample.tid] = wait
        self._samples = samples
        return waits

    def _objects(
        self, waits: set[FutexWait], tids: Mapping[int, Sample]
    ) -> dict[FutexWait, SyncObject]:
        addresses = sorted({wait.address for wait in waits})
        context = dict(zip(addresses, self._memory(addresses), strict=True))
        cache: dict[FutexWait, tuple[bytes, SyncObject | None]] = {}
        for wait in waits:
            cache[wait] = self._recognise(wait, context[wait.address], tids)
        objects = {
            wait: self._add_owner(
                sync_object or self._former_object(wait, context[wait.address]), tids
            )
            for wait, (_, sync_object) in cache.items()
        }
        self._cache = cache
        self._last_objects = {wait.address: sync_object for wait, sync_object in objects.items()}
        if len(self._mutexes) > _MAX_KEPT:
            self._mutexes.clear()
        self._mutexes.update(
            (address, sync_object)
            for address, sync_object in self._last_objects.items()
            if sync_object.kind is Kind.MUTEX
        )
        return objects

    def _recognise(
        self, wait: FutexWait, context: bytes, tids: Mapping[int, Sample]
    ) -> tuple[bytes, SyncObject | None]:
        """Return the memory around the word, and the object recognised by that memory."""
        cached = self._cache.get(wait)
        if cached is None or cached[0] != context:
            sync_object = nptl_objects.recognise(
                wait, context, tids, self._glibc, self._is_once, self._waits_at
            )
            if sync_object is None and self._waits_at(wait.pc):
                sync_object = join_states.find_join(self._pid, wait, context, tids, self._glibc)
            cached = (context, sync_object)
        return cached

    def read_again(self, words: Container[int]) -> None:
        """Read the owners of some locks in each sample, from now on.

        Args:
            words: the addresses at which threads wait for these locks.
        """
        for tid, wait in self._waits.items():
            if wait.futex.address in words:
                self._reread[tid] = wait.futex

    def _add_owner(self, sync_object: SyncObject, samples: Mapping[int, Sample]) -> SyncObject:
        """Add the owner of an RLock of Python, or the thread that runs a once routine."""
        owner = self.rlock_owner(sync_object.address)
        if owner is not None:
            return replace(sync_object, owner=owner, recursive=True)
        return self._add_once_runner(sync_object, samples)

    def _add_once_runner(
        self, sync_object: SyncObject, samples: Mapping[int, Sample]
    ) -> SyncObject:
        """Add the thread that runs the routine, if it has slept since the probe found it."""
        if sync_object.kind is not Kind.ONCE or sync_object.address not in self.runners:
            return sync_object
        tid, seq = self.runners[sync_object.address]
        sample = samples.get(tid)
        asleep = sample is not None and sample.seq == seq
        return replace(sync_object, owner=tid) if asleep else sync_object

    def _note_left_by(self, newcomers: Set[int]) -> None:
        """Note the objects whose former owners had these tids."""
        for wait in self._waits.values():
            if wait.sync_object.owner in newcomers:
                left_by = self._left_by_ended.setdefault(
                    wait.futex.address, (wait.sync_object.owner, set())
                )
                left_by[1].add(wait.seq)

    def _remove_former_owners(
        self, objects: dict[FutexWait, SyncObject], sleeps: Iterable[tuple[int, int]]
    ) -> None:
        """Remove owners that have ended.

        The word of a lock names its ended owner, also when another thread has the id. As long as no
        waiter was woken, the lock was not released.
        """
        going_on: dict[int, set[int]] = {}
        for address, seq in sleeps:
            going_on.setdefault(address, set()).add(seq)
        self._left_by_ended = {
            address: (owner, seqs)
            for address, (owner, seqs) in self._left_by_ended.items()
            if seqs <= going_on.get(address, set())
        }
        for wait, sync_object in objects.items():
            owner, _ = self._left_by_ended.get(wait.address, (0, None))
            if owner and sync_object.owner == owner:
                objects[wait] = replace(sync_object, owner=0)

    def _former_object(self, wait: FutexWait, context: bytes) -> SyncObject:
        """Between two owners a lock does not match its layout: then keep what is known of it."""
        mutex, last_object = self._mutexes.get(wait.address), self._last_objects.get(wait.address)
        if mutex is not None and nptl_objects.is_between_owners(mutex, wait, context):
            return replace(mutex, owner=0)
        if last_object is not None and last_object.kind not in FORGOTTEN_KINDS:
            return replace(last_object, owner=0, readers=0)
        unknown = SyncObject(kind=Kind.FUTEX, address=wait.address, shared=not wait.private)
        # keep the same object as long as nothing changes
        return last_object if last_object == unknown else unknown

    def _memory(self, addresses: list[int]) -> list[bytes]:
        """Return the memory around each address.

        The memory before the word may be another mapping or none. Then bytes that no object has
        there fill the gap.
        """
        wanted = [piece for address in addresses for piece in _pieces(address)]
        read = iter(process_memory.read_many(self._pid, wanted))
        contents = []
        for address in addresses:
            if len(_pieces(address)) == 1:
                contents.append(next(read))
                continue
            before, after = next(read), next(read)
            contents.append((before or b"\xff" * BEFORE) + after if after else b"")
        return contents


def _renews(wait: SampledWait, sample: Sample, former: SampledWait, earlier: Sample) -> bool:
    """Return whether a thread has only looked at the clock and waits on for the same object.

    The kernel has put it on a CPU once since the former sample, in the same call with the same
    stack pointer, so the thread slept nowhere else. In the time on the CPU it can have done little.
    """
    call, before = sample.call, earlier.call
    return (
        wait.futex.timed
        and wait.sync_object.kind not in TURNS_KINDS  # the order of their waiters counts
        and call is not None
        and before is not None
        and (call.number, call.sp, call.pc) == (before.number, before.sp, before.pc)
        and sample.runs == earlier.runs + 1
        and sample.cpu_s - earlier.cpu_s <= _MAX_RENEWAL_S
        and wait.sync_object.kind is former.sync_object.kind
        and wait.sync_object.address == former.sync_object.address
    )


def _later_reads(wait: SampledWait, sync_object: SyncObject) -> int:
    """Return how often a lock was taken to read during a wait, by the number of its readers."""
    before, now = wait.sync_object.readers, sync_object.readers
    return wait.later_reads + max(now - before, 0) if before else wait.later_reads


def _pieces(address: int) -> tuple[tuple[int, int], ...]:
    """Return one piece if all bytes lie in one page, else the parts before and from the word."""
    if (
        address % process_memory.PAGE >= BEFORE
        and address % process_memory.PAGE + AFTER <= process_memory.PAGE
    ):
        return ((address - BEFORE, BEFORE + AFTER),)
    return (address - BEFORE, BEFORE), (address, AFTER)
