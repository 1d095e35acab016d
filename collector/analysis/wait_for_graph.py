"""Who waits for whom: what each wait needs to end.

A mutex, a reader-writer lock, a spin lock or a routine that runs once needs its holder to go on; a
join the thread that is to end; a reader also the writers that go first. A semaphore needs one of
those that may post it, a condition one of those that may signal it, a barrier one of those that
have not come: all of them must be stuck before such a wait is.

Only what the holders themselves list as held counts: the holder that a waiter saw when it began to
wait may have released the lock since. But a list may be stale (a mutex destroyed while held, its
address used again), so what the waiter saw must not contradict it. A wait that gives up by itself
stops nobody for good and needs nothing.

Nobody owns a semaphore. It is taken for a lock as long as each post was one of a thread that had
got it, and while the threads that got it account for all that it was initialised to (also where its
address was one of others before: what these left behind would be too much). Where calls were not
counted for a time, who did what since the start is not known, and nothing certain follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from locktop.collector.model import BlockReason, Deadlock, Held, Kind, Lock, Thread, Use, Wait

#: Kinds of lock whose holders list them.
_LISTED = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.ONCE, Kind.CUSTOM})
#: Of those, the ones in which nothing says who has them.
_UNSIGNED = frozenset({Kind.SPIN, Kind.ONCE})
#: A thread that was let go may not run for long, and shows its wait until then: only one that the
#: kernel shows asleep is known to wait for these.
_ASLEEP = frozenset({Kind.SEM, Kind.COND, Kind.BARRIER, Kind.JOIN})
_SHARED = frozenset({Kind.SEM, Kind.COND})
#: Threads are read one after the other, so how long two of them have waited compares only so well.
_CLEARLY_S = 0.1
#: What is not certain is not told of waits that may be about to end.
_SETTLED_S = 1.0
_MAX_WRITERS = 8
#: Posts after which a semaphore is taken for a lock also where threads tell each other things by
#: semaphores and conditions, as all of Python's do: a lock of Python's may be got to wait for the
#: thread that posts it.
_OFTEN = 3
_NO_SITES: Mapping[int, int] = MappingProxyType({})

#: locktop.h has no word for a wait with an end.
MAY_GIVE_UP = "a wait for one of the program's own locks may give up by itself"
MAY_SIGNAL = (
    "another thread may yet {verb} what is waited for; all that {have} done so until now are stuck"
)
MAY_COME = "another thread may yet come to the barrier; all that {have} done so until now are stuck"
LIST_GONE = (
    "the owner is gone (it ended, or was left behind by a fork), and it is not known whether it"
    " released the lock before"
)
OTHER_PROCESS = "another process may post the semaphore"
NOT_GIVEN_BACK = "the semaphore may be no lock: it is not known that who gets it gives it back"
NOT_COUNTED = "how often the semaphore can be got is not known"
NOT_COMPLETE = (
    "the library was dormant for a time: who got the semaphore then, or posted it, is not known"
)


class Need(NamedTuple):
    """What a wait needs to end: that all of ``blockers`` (tids) go on, or just one of them.
    The waits for one lock share it where they need the same."""

    how: BlockReason
    blockers: Set[int]
    one_will_do: bool = False
    doubt: str = ""  # why it may end all the same
    sites: Mapping[int, int] = _NO_SITES  # by tid: where it took the lock
    #: Of semaphores: what each thread had done. Threads are read one after the other, but where
    #: two looks show the same, it was so in between.
    uses: Set[tuple[int, int, int]] = frozenset()


class Stop(NamedTuple):
    """A wait that cannot end before all of its ``needs`` are met."""

    tid: int
    seq: int  # of the wait
    lock: int  # id
    needs: tuple[Need, ...]
    stack: int = 0
    duration_s: float = 0.0
    asleep: bool = False  # it is one only if the kernel shows the thread asleep
    is_lower_bound: bool = False  # for_s


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of one look, by tid, and the threads among their blockers that are no more."""

    stops: Mapping[int, Stop]
    ended: Set[int]


def waits(threads: Sequence[Thread], locks: Mapping[int, Lock], complete: bool = True) -> Waits:
    """Return what the living threads wait for. ``threads``: all, watched or not. ``complete``: see
    Snapshot."""
    scan = _Look(threads, locks, complete)
    stops = {
        tid: stop
        for tid, wait in scan.waiting.items()
        if (stop := scan.stop(tid, wait)) is not None
    }
    needs = {id(need): need for stop in stops.values() for need in stop.needs}
    ended = {tid for need in needs.values() for tid in need.blockers} - scan.living
    return Waits(stops, ended)


def of(waits: Waits, deadlocks: Sequence[Deadlock]) -> Waits:
    """Return those of the waits that have to do with the deadlocks."""
    tids = {edge.tid for one in deadlocks for edge in one.cycle}
    tids.update(tid for one in deadlocks for tid in one.stuck)
    return Waits({tid: waits.stops[tid] for tid in tids}, waits.ended)


def without(waits: Waits, tids: Set[int]) -> Waits:
    """Return the waits but for those of some threads."""
    if not tids:
        return waits
    return Waits({tid: one for tid, one in waits.stops.items() if tid not in tids}, waits.ended)


def both(before: Waits, now: Waits, awake: Set[int] = frozenset()) -> Waits:
    """Return what did not change between two looks: of each wait that went on all the time what it
    needed all the time. ``awake``: threads that the kernel showed awake, or alive, in between."""
    known: dict[tuple[int, int], Need] = {}
    stops: dict[int, Stop] = {}
    for tid, stop in now.stops.items():
        earlier = before.stops.get(tid)
        if earlier is None or (earlier.seq, earlier.lock) != (stop.seq, stop.lock):
            continue
        if stop.asleep and tid in awake:
            continue
        needs = tuple(_shared_needs(earlier.needs, stop.needs, known))
        if needs:
            stops[tid] = stop._replace(
                needs=needs, duration_s=earlier.duration_s
            )  # as its wait is told
    return Waits(stops, (before.ended & now.ended) - awake)


def _shared_needs(
    before: Sequence[Need], now: Sequence[Need], known: dict[tuple[int, int], Need]
) -> Iterator[Need]:
    for need in now:
        for earlier in before:
            if _told_by(earlier) != _told_by(need):
                continue
            key = (id(earlier), id(need))
            if key not in known:
                # Each of those that are waited for stands in the way as long as it did in both
                # looks; but each that might have helped in either is a way out.
                same = (
                    earlier.blockers | need.blockers
                    if need.one_will_do
                    else earlier.blockers & need.blockers
                )
                known[key] = need._replace(blockers=same)
            if known[key].blockers or need.one_will_do:
                yield known[key]


def _told_by(need: Need) -> tuple[object, ...]:
    return need.how, need.one_will_do, need.doubt, need.uses


@dataclass(slots=True)
class _Holders:
    """Who lists one lock."""

    readers: dict[int, Held] = field(default_factory=dict)
    owners: dict[int, Held] = field(default_factory=dict)


class _Look:
    """One look, by lock; what the waits for a lock have in common is worked out once."""

    def __init__(
        self, threads: Sequence[Thread], locks: Mapping[int, Lock], complete: bool
    ) -> None:
        self._locks = locks
        self._complete = complete
        self._have = "have" if complete else "are known to have"
        self._needs: dict[tuple[object, ...], Need] = {}
        self._of_many: dict[tuple[object, ...], tuple[Need, ...]] = {}
        self.living = {thread.tid for thread in threads if thread.alive}
        self.waiting = {
            thread.tid: wait
            for thread in threads
            if thread.alive and (wait := thread.waiting_for) is not None and _counts(wait)
        }
        self._waiters: dict[int, list[int]] = {}
        for tid, wait in self.waiting.items():
            self._waiters.setdefault(wait.lock, []).append(tid)
        self._holders: dict[int, _Holders] = {}
        self._users: dict[int, dict[int, Use]] = {}
        self._units: dict[int, dict[int, int]] = {}
        self._signalled: dict[int, dict[int, int]] = {}
        self._elsewhere = {thread.tid for thread in threads if thread.pid}
        self._signallers = {thread.tid for thread in threads if thread.signals}
        self._uses_known = all(thread.uses is not None for thread in threads)
        for thread in threads:
            self._note(thread)

    def _note(self, thread: Thread) -> None:
        for entry in thread.holds:
            if entry.lock in self._waiters:
                listed = self._holders.setdefault(entry.lock, _Holders())
                (listed.readers if entry.shared else listed.owners)[thread.tid] = entry
        for use in thread.uses or ():
            self._users.setdefault(use.lock, {})[thread.tid] = use

    def stop(self, tid: int, wait: Wait) -> Stop | None:
        """Return the wait if it needs somebody to go on."""
        needs = self._alike(tid, wait) if wait.kind in _SHARED else tuple(self._needed(tid, wait))
        if not needs:
            return None
        asleep = wait.kind in _ASLEEP or any(need.doubt == LIST_GONE for need in needs)
        return Stop(
            tid,
            wait.seq,
            wait.lock,
            needs,
            wait.stack,
            wait.duration_s,
            asleep,
            wait.is_lower_bound,
        )

    def _alike(self, tid: int, wait: Wait) -> tuple[Need, ...]:
        """All waits for a semaphore or a condition need the same, but those of threads that have
        got some of it themselves, and those that have just begun."""
        has_some = bool(self._got(wait.lock).get(tid))
        key = (wait.lock, wait.kind, wait.pshared, wait.duration_s < _SETTLED_S, has_some)
        found = self._of_many.get(key)
        if found is None:
            found = self._of_many[key] = tuple(self._needed(tid, wait))
        return found

    def _needed(self, tid: int, wait: Wait) -> Iterator[Need]:
        if wait.kind in _LISTED:
            yield from self._held(tid, wait)
        elif wait.kind is Kind.JOIN:
            if wait.awaits in self.living:
                yield self._one(BlockReason.LIVES, wait.lock, wait.awaits)
        elif wait.kind is Kind.BARRIER:
            yield from self._arrivals(wait)
        elif wait.kind is Kind.SEM:
            yield from self._posts(tid, wait)
        elif wait.kind is Kind.COND:
            yield from self._signals(wait, "signal")

    def _one(self, how: BlockReason, lock: int, tid: int, site: int = 0, doubt: str = "") -> Need:
        key = (how, lock, tid, doubt)
        if key not in self._needs:
            self._needs[key] = Need(how, frozenset({tid}), doubt=doubt, sites={tid: site})
        return self._needs[key]

    # ---- locks that are held ----

    def _held(self, tid: int, wait: Wait) -> Iterator[Need]:
        lock, listed = self._locks.get(wait.lock), self._holders.get(wait.lock, _Holders())
        believed = [
            (holder, entry)
            for holder, entry in listed.owners.items()
            if self._is_believed(tid, wait, holder, len(listed.owners), lock)
        ]
        for holder, entry in believed:
            if not (holder == tid and lock is not None and lock.recursive):
                yield from self._by(wait, holder, entry, lock)
        if listed.readers and not wait.shared:
            yield from self._readers(wait, listed.readers, lock)
        if wait.shared and lock is not None and lock.writers_first:
            yield from self._behind(wait)
        if wait.kind is Kind.MUTEX and not listed.owners:
            yield from self._unlisted(wait, lock)

    def _by(self, wait: Wait, holder: int, entry: Held, lock: Lock | None) -> Iterator[Need]:
        how = BlockReason.RUNS if wait.kind is Kind.ONCE else BlockReason.HELD
        if holder not in self.living:
            if lock is None or lock.freed_at_exit:
                return
            how = BlockReason.ABANDONED
        doubt = MAY_GIVE_UP if wait.kind is Kind.CUSTOM else ""
        yield self._one(how, wait.lock, holder, entry.site, doubt)

    def _readers(self, wait: Wait, readers: dict[int, Held], lock: Lock | None) -> Iterator[Need]:
        if lock is not None and lock.foreign_releases:
            return  # any of them may have been released for it
        for how in (BlockReason.HELD, BlockReason.ABANDONED):
            key = (how, wait.lock)
            if key not in self._needs:
                among = {
                    one: entry.site
                    for one, entry in readers.items()
                    if (one in self.living) is (how is BlockReason.HELD)
                }
                doubt = MAY_GIVE_UP if wait.kind is Kind.CUSTOM else ""
                self._needs[key] = Need(how, among.keys(), doubt=doubt, sites=among)
            if self._needs[key].blockers and (
                how is BlockReason.HELD or _is_in_its_first_life(lock)
            ):
                yield self._needs[key]

    def _is_believed(
        self, tid: int, wait: Wait, holder: int, owners: int, lock: Lock | None
    ) -> bool:
        """A lock has one owner. Whoever has waited for longer than this thread took it before, so
        this thread saw it as the owner; so did a thread that waits for what it has itself, or for
        what one has that ended. Nobody tells of a release by another process."""
        if lock is not None and lock.foreign_releases:
            # Each release by another thread left an entry behind. Who lists what it waits for then
            # waits for such a release.
            return holder == wait.holder_seen != tid
        if owners > 1 or holder == tid or holder in self._elsewhere or holder not in self.living:
            if wait.kind in _UNSIGNED:
                return owners == 1 and _is_in_its_first_life(lock)
            return wait.holder_seen == holder
        its_wait = self.waiting.get(holder)
        if its_wait is not None and its_wait.duration_s > wait.duration_s + _CLEARLY_S:
            return wait.holder_seen in (0, holder)
        return True

    def _behind(self, wait: Wait) -> Iterator[Need]:
        """A reader of a lock whose writers go first waits for those that wait already. One that
        came later is not what stopped it; of two that have just come nobody knows who was first."""
        if wait.duration_s <= _CLEARLY_S:
            return
        for duration_s, writer in self._writers(wait.lock):
            if duration_s + _CLEARLY_S > wait.duration_s:
                yield self._one(BlockReason.BEHIND, wait.lock, writer)

    def _writers(self, lock: int) -> list[tuple[float, int]]:
        """Return how long which writers have waited: the longest first, and only some, for all of
        them wait for the same holders."""
        found = [
            (wait.duration_s, tid)
            for tid in self._waiters[lock]
            if not (wait := self.waiting[tid]).shared and wait.duration_s > _CLEARLY_S
        ]
        return sorted(found, reverse=True)[:_MAX_WRITERS]

    def _unlisted(self, wait: Wait, lock: Lock | None) -> Iterator[Need]:
        """A thread that ended keeps its list only for a time. The mutex still names it, or named it
        when the wait began."""
        owner = wait.holder_seen
        if not owner or owner in self.living or wait.pshared or wait.duration_s < _SETTLED_S:
            return
        if lock is not None and not lock.freed_at_exit and not lock.foreign_releases:
            yield self._one(BlockReason.ABANDONED, wait.lock, owner, doubt=LIST_GONE)

    # ---- what one of many may end ----

    def _among(
        self,
        how: BlockReason,
        wait: Wait,
        tids: Set[int],
        doubt: str = "",
        uses: Set[tuple[int, int, int]] = frozenset(),
    ) -> Iterator[Need]:
        if doubt and wait.duration_s < _SETTLED_S:
            return
        key = (how, wait.lock, doubt)
        if key not in self._needs:
            self._needs[key] = Need(how, tids, True, doubt, uses=uses)
        yield self._needs[key]

    def _posts(self, waiter: int, wait: Wait) -> Iterator[Need]:
        lock, users = self._locks.get(wait.lock), self._users.get(wait.lock, {})
        if lock is None or not self._uses_known:
            return
        got = self._got(wait.lock)
        if lock.foreign_releases or min(got.values(), default=0) < 0:
            yield from self._signals(wait, "post")
            return
        holders, units = {tid for tid, units in got.items() if units}, sum(got.values())
        if not holders or (lock.first_value >= 0 and lock.first_value != units):
            return  # somebody else has some, or one is on its way
        if lock.acquisitions - lock.signals != units:
            return  # some were got by threads that ended
        # Of one unit it is known who has it; who posts one of several may have another one's.
        posters = {tid for tid in users if users[tid].signals and tid in self.living}
        if wait.pshared:
            doubt = OTHER_PROCESS
        elif not self._complete:
            doubt = NOT_COMPLETE
        elif lock.first_value < 0:
            doubt = NOT_COUNTED
        elif self._is_given_back(lock, waiter, holders):
            doubt = ""
        elif holders & self.living:
            doubt = NOT_GIVEN_BACK
        else:
            return
        if doubt and waiter in holders:
            return  # as in a queue, or a condition made of semaphores: anybody may post it
        how = BlockReason.GOT if holders & self.living else BlockReason.ABANDONED
        alone = lock.first_value == 1
        uses = frozenset((tid, use.acquisitions, use.signals) for tid, use in users.items())
        yield from self._among(how, wait, holders if alone else holders | posters, doubt, uses)

    def _got(self, lock: int) -> dict[int, int]:
        """How often each thread got a semaphore without having posted it; once for all waiters."""
        if lock not in self._units:
            users = self._users.get(lock, {})
            self._units[lock] = {tid: use.acquisitions - use.signals for tid, use in users.items()}
        return self._units[lock]

    def _signals_of(self, lock: int) -> dict[int, int]:
        """How often each thread that did signalled it."""
        if lock not in self._signalled:
            users = self._users.get(lock, {})
            self._signalled[lock] = {tid: use.signals for tid, use in users.items() if use.signals}
        return self._signalled[lock]

    def _is_given_back(self, lock: Lock, waiter: int, holders: Set[int]) -> bool:
        """Tell whether those that have a semaphore may be taken for its holders, who give it back.
        What was done with others that lay at its address before says nothing of it. Whoever gets a
        place in a queue tells somebody, and whoever waits again for what it got may get it from
        anybody."""
        users, of_others = self._users[lock.id], waiter not in holders and holders <= self.living
        often = 0 if lock.generation else min(users[tid].signals for tid in holders)
        if holders & self._signallers:
            return often >= _OFTEN and of_others
        return often > 0 or (lock.first_value == 1 and of_others)

    def _signals(self, wait: Wait, verb: str) -> Iterator[Need]:
        """Those that signalled it may again. Where one of them has ended, the next one may come."""
        lock = self._locks.get(wait.lock)
        if lock is None or not self._uses_known or wait.pshared:
            return
        signalled = self._signals_of(wait.lock)
        all_live = signalled.keys() <= self.living and lock.signals <= sum(signalled.values())
        if signalled and all_live:
            doubt = MAY_SIGNAL.format(verb=verb, have=self._have)
            yield from self._among(BlockReason.SIGNALS, wait, signalled.keys(), doubt)

    def _arrivals(self, wait: Wait) -> Iterator[Need]:
        """Whoever has not come yet may come, and whoever lives may start a thread that does."""
        here, users = self._waiters[wait.lock], self._users.get(wait.lock, {})
        if wait.pshared or len(here) >= wait.parties:
            return
        yield from self._among(BlockReason.ABSENT, wait, self.living.difference(here))
        others = {tid for tid in users if users[tid].acquisitions and tid in self.living}
        if len(others.union(here)) >= wait.parties and self._uses_known:
            doubt = MAY_COME.format(have=self._have)
            yield from self._among(BlockReason.ABSENT, wait, others.difference(here), doubt)


def _is_in_its_first_life(lock: Lock | None) -> bool:
    """Tell whether no list can be one of an earlier lock at its address."""
    return lock is not None and not lock.generation


def _counts(wait: Wait) -> bool:
    return not wait.timed and wait.lock != 0  # 0 stands for many
