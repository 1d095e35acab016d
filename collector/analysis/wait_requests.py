"""Builds the wait-for graph of one scan: what each wait requests, and from which threads.

- A wait for a mutex, rwlock, spin lock, once routine or RLock of Python needs its holder to go on.
- A reader also needs the writers that go first.
- A join needs the thread that is to end, a guard of C++ the known thread of its initialiser.
- A wait for a semaphore or condition variable needs one of the threads that may post or signal it.
- A wait at a barrier needs one of the threads that have not come.

So the last three waits are stuck only if all of these threads are stuck.

A thread counts as a holder only if its own list names the lock. The holder that a waiter observed
at the beginning of its wait may have released the lock since. But a list may be stale: a program
may destroy a mutex that is held and use its address again. So the observation of the waiter must
not contradict the list. A wait with a time limit ends by itself, so it blocks nothing for good.

No thread owns a semaphore. A semaphore counts as a lock under two conditions. Each post came from a
thread that had got the semaphore. And the threads that got it account for all units of its first
value. The library counts both anew in each life of a semaphore. If the library did not count calls
for a time, the counts are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct, field

from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.model import BlockReason, Held, Kind, Lock, LockUse, Thread, Wait
from locktop.collector.model.kinds import (
    LISTED_KINDS,
    MAY_GIVE_UP_KINDS,
    MUST_BE_ASLEEP_KINDS,
    OWNER_UNNAMED_KINDS,
    READERS_UNNAMED_KINDS,
    SAME_REQUESTS_KINDS,
    SIGNALLED_KINDS,
    SLEEPS_FOR_ENDED_KINDS,
)

#: A scan reads the threads one after the other, so durations compare with this accuracy.
_ACCURACY_S = 0.1
#: A wait that has just begun may end soon: it has no doubtful requests.
_MIN_DOUBTFUL_S = 1.0
_MAX_WRITERS = 8
#: So many posts by a holder make a semaphore a lock. This holds even in a program that signals by
#: semaphores and conditions. Python is such a program. A thread may take a Python lock only to wait
#: for the thread that releases the lock.
_MIN_POSTS = 3
#: The same if the waiter itself has the unit, or a thread that ended. Such a wait looks like the
#: wait for a message that a third thread sends.
_MIN_POSTS_ALONE = 16
#: locktop.h has no way to say that a wait has a time limit.
MAY_GIVE_UP = "a wait for one of the program's own locks may give up by itself"
MAY_SIGNAL = "another thread may still {verb} it; all threads that {have} done so are stuck"
MAY_COME = "another thread may still come to the barrier; all threads that {have} come are stuck"
LIST_GONE = (
    "the owner is gone (it ended, or a fork left it behind), and it is not known whether it"
    " released the lock before"
)
READ_BEFORE = (
    "a thread ended and still listed the lock for reading; other threads hold the lock for reading"
    " too, so it is not known whether the ended thread released it before"
)
OTHER_PROCESS = "another process may post the semaphore"
NOT_GIVEN_BACK = "the semaphore may not be a lock: a thread that gets it may never post it"
NOT_COUNTED = "the number of units of the semaphore is not known"
NOT_COMPLETE = (
    "the library was dormant for a time: it did not count the threads that got or posted the"
    " semaphore then"
)


def build_graph(
    threads: Sequence[Thread],
    locks: Mapping[int, Lock],
    complete: bool = True,
    first_thread: int = 0,
    left_by_fork: Set[int] = frozenset(),
    lost: Set[int] = frozenset(),
    initialisers: Mapping[int, int] | None = None,
) -> WaitForGraph:
    """Build the wait-for graph of one scan.

    Args:
        threads: All threads of the process, and the threads of peer processes.
        locks: The locks by id.
        complete: See ``Snapshot.complete``.
        first_thread: The tid of the first thread of the process, 0 unknown. In a forked child, this
            thread returned from the fork.
        left_by_fork: The tids of owners of mutexes that are threads of the parent, since before the
            fork.
        lost: The tids of owners of mutexes in shared memory that no process has.
        initialisers: By tid of a waiter for the guard of a C++ variable, who runs the initialiser.
    """
    others = left_by_fork, lost, initialisers or {}
    builder = _GraphBuilder(threads, locks, complete, first_thread, *others)
    blocked = {
        tid: thread
        for tid, wait in builder.waiting.items()
        if (thread := builder.blocked_thread(tid, wait)) is not None
    }
    requests = {id(request): request for thread in blocked.values() for request in thread.requests}
    ended = {tid for request in requests.values() for tid in request.providers} - builder.living
    return WaitForGraph(blocked, ended)


class _ListedHolders(Struct):
    """The threads whose lists name one lock, by tid."""

    readers: dict[int, Held] = field(default_factory=dict)
    owners: dict[int, Held] = field(default_factory=dict)


_NO_HOLDERS = _ListedHolders()


class _GraphBuilder:
    """One scan, indexed by lock. Requests that several waits share are made once."""

    def __init__(
        self,
        threads: Sequence[Thread],
        locks: Mapping[int, Lock],
        complete: bool,
        first_thread: int,
        left_by_fork: Set[int],
        lost: Set[int],
        initialisers: Mapping[int, int],
    ) -> None:
        self._locks = locks
        self._complete = complete
        self._first_thread = first_thread
        self._left_by_fork = left_by_fork
        self._lost = lost
        self._initialisers = initialisers
        self._have = "have" if complete else "are known to have"
        self._requests: dict[tuple[object, ...], Request] = {}
        self._same_for_all: dict[tuple[object, ...], tuple[Request, ...]] = {}
        self.living = {thread.tid for thread in threads if thread.alive}
        self.waiting = {
            thread.tid: wait
            for thread in threads
            if thread.alive and (wait := thread.waiting_for) is not None and _can_block(wait)
        }
        self._waiters: dict[int, list[int]] = {}
        for tid, wait in self.waiting.items():
            self._waiters.setdefault(wait.lock, []).append(tid)
        self._holders: dict[int, _ListedHolders] = {}
        self._users: dict[int, dict[int, LockUse]] = {}  # by lock and tid
        self._units_cache: dict[int, dict[int, int]] = {}
        self._signals_cache: dict[int, dict[int, int]] = {}
        self._writers: dict[int, list[tuple[float, int]]] = {}
        self._living_owners: dict[int, dict[int, Held]] = {}
        self._in_peers = {thread.tid for thread in threads if thread.pid}
        self._signallers = {thread.tid for thread in threads if thread.signals}
        self._uses_known = all(thread.uses is not None for thread in threads)
        for thread in threads:
            self._index(thread)

    def _index(self, thread: Thread) -> None:
        for entry in thread.holds:
            if entry.lock in self._waiters:
                listed = self._holders.setdefault(entry.lock, _ListedHolders())
                (listed.readers if entry.shared else listed.owners)[thread.tid] = entry
        for use in thread.uses or ():
            lock = self._locks.get(use.lock)
            if lock is None or lock.is_of_this_life(use):
                self._users.setdefault(use.lock, {})[thread.tid] = use

    def blocked_thread(self, tid: int, wait: Wait) -> BlockedThread | None:
        """Return the thread with its requests, None if its wait depends on no thread."""
        at_fork = self._request_at_fork(tid, wait)
        if at_fork is not None:
            requests: tuple[Request, ...] = (at_fork,)
        elif wait.kind in SAME_REQUESTS_KINDS:
            requests = self._shared_requests(tid, wait)
        else:
            requests = tuple(self._requests_of(tid, wait))
        if not requests:
            return None
        # No word of a lock names its readers: a writer that was just woken waits for nobody.
        by_list = wait.kind in READERS_UNNAMED_KINDS and not wait.holder_seen
        # The threads of a process that is killed wake, and then end one after the other.
        may_wake = by_list or (wait.kind in SLEEPS_FOR_ENDED_KINDS and not wait.pshared)
        unproven = any(
            request.doubt == LIST_GONE
            or (may_wake and request.reason is BlockReason.ABANDONED)
            or not request.providers.isdisjoint(self._left_by_fork)
            for request in requests
        )
        return BlockedThread(
            tid=tid,
            seq=wait.seq,
            lock=wait.lock,
            requests=requests,
            stack=wait.stack,
            duration_s=wait.duration_s,
            must_be_asleep=wait.kind in MUST_BE_ASLEEP_KINDS or unproven,
            is_lower_bound=wait.is_lower_bound,
        )

    def _shared_requests(self, tid: int, wait: Wait) -> tuple[Request, ...]:
        """All waits for a semaphore, condition or barrier have the same requests. Two groups
        differ: threads that have units of the semaphore, and waits that have just begun."""
        has_units = bool(self._units(wait.lock).get(tid))
        has_begun = wait.duration_s < _MIN_DOUBTFUL_S
        key = (wait.lock, wait.kind, wait.pshared, wait.parties, has_begun, has_units)
        requests = self._same_for_all.get(key)
        if requests is None:
            requests = self._same_for_all[key] = tuple(self._requests_of(tid, wait))
        return requests

    def _requests_of(self, tid: int, wait: Wait) -> Iterator[Request]:
        is_rlock = wait.kind is Kind.SEM and wait.holder_seen and wait.lock in self._holders
        if wait.kind in LISTED_KINDS or is_rlock:
            yield from self._lock_requests(tid, wait)
        elif self._initialisers.get(tid) in self.living:
            yield self._single(BlockReason.RUNS, wait.lock, self._initialisers[tid])
        elif wait.kind is Kind.JOIN:
            if wait.awaits in self.living:
                yield self._single(BlockReason.LIVES, wait.lock, wait.awaits)
        elif wait.kind is Kind.BARRIER:
            yield from self._barrier_requests(wait)
        elif wait.kind is Kind.SEM:
            yield from self._semaphore_requests(tid, wait)
        elif wait.kind in SIGNALLED_KINDS:
            yield from self._signal_requests(wait, "signal")

    def _single(
        self, reason: BlockReason, lock: int, tid: int, site: int = 0, doubt: str = ""
    ) -> Request:
        key = (reason, lock, tid, doubt)
        if key not in self._requests:
            self._requests[key] = Request(reason, frozenset({tid}), doubt=doubt, sites={tid: site})
        return self._requests[key]

    # ---- locks with holders ----

    def _lock_requests(self, tid: int, wait: Wait) -> Iterator[Request]:
        lock, listed = self._locks.get(wait.lock), self._holders.get(wait.lock, _NO_HOLDERS)
        owners = self._credible_owners(wait, listed.owners)
        # Of several owners only the one that the wait observed is plausible. Thousands of threads
        # may list, and wait for, one mutex that is handed over.
        holder = wait.holder_seen if len(owners) > 1 else next(iter(owners), 0)
        if (
            holder in owners
            and self._is_plausible(tid, wait, holder, len(owners), lock)
            and not (holder == tid and lock is not None and lock.recursive)
        ):
            yield from self._owner_request(wait, holder, owners[holder], lock)
        if listed.readers and not wait.shared:
            yield from self._reader_requests(wait, listed.readers, lock)
        if wait.shared and lock is not None and lock.writers_first:
            yield from self._writer_requests(wait)
        if wait.kind is Kind.MUTEX and not listed.owners:
            yield from self._gone_owner_request(tid, wait, lock)

    def _credible_owners(self, wait: Wait, owners: dict[int, Held]) -> dict[int, Held]:
        """Return the owners without ended threads whose lists are certainly stale.

        The list of an ended thread stays. The memory of its lock may be another lock since.
        """
        living = self._living_owners.get(wait.lock)
        if living is None:
            living = {tid: entry for tid, entry in owners.items() if tid in self.living}
            self._living_owners[wait.lock] = living
        if wait.kind in OWNER_UNNAMED_KINDS:
            return living or owners
        seen = wait.holder_seen
        return {**living, seen: owners[seen]} if seen in owners and seen not in living else living

    def _owner_request(
        self, wait: Wait, holder: int, entry: Held, lock: Lock | None
    ) -> Iterator[Request]:
        reason = BlockReason.RUNS if wait.kind is Kind.ONCE else BlockReason.HELD
        if holder not in self.living:
            if lock is None or lock.freed_at_exit:
                return
            reason = BlockReason.ABANDONED
        doubt = MAY_GIVE_UP if wait.kind in MAY_GIVE_UP_KINDS else ""
        yield self._single(reason, wait.lock, holder, entry.site, doubt)

    def _reader_requests(
        self, wait: Wait, readers: dict[int, Held], lock: Lock | None
    ) -> Iterator[Request]:
        if lock is not None and lock.foreign_releases:
            return  # another thread may have released the lock for any of the readers
        for reason in (BlockReason.HELD, BlockReason.ABANDONED):
            key = (reason, wait.lock)
            if key not in self._requests:
                sites = {
                    tid: entry.site
                    for tid, entry in readers.items()
                    if (tid in self.living) is (reason is BlockReason.HELD)
                }
                doubt = MAY_GIVE_UP if wait.kind in MAY_GIVE_UP_KINDS else ""
                if reason is BlockReason.ABANDONED and len(sites) < len(readers):
                    doubt = READ_BEFORE
                self._requests[key] = Request(reason, sites.keys(), doubt=doubt, sites=sites)
            request = self._requests[key]
            if not request.providers:
                continue
            if reason is BlockReason.HELD or (
                _is_first_at_its_address(lock)
                and not (request.doubt == READ_BEFORE and wait.duration_s < _MIN_DOUBTFUL_S)
            ):
                yield request

    def _is_plausible(
        self, tid: int, wait: Wait, holder: int, owners: int, lock: Lock | None
    ) -> bool:
        """Return whether the list of ``holder`` may be right: a lock has one owner.

        If a holder has waited for longer than this thread, the holder took the lock before. So this
        thread observed the holder as the owner. The same holds for a thread that waits for its own
        lock, and for a holder that has ended. Releases by other processes are not recorded.
        """
        if lock is not None and lock.foreign_releases:
            # Each release by another thread left an entry behind. A thread that lists the lock and
            # waits for it waits for such a release.
            return holder == wait.holder_seen != tid
        if owners > 1 or holder == tid or holder in self._in_peers or holder not in self.living:
            if wait.kind in OWNER_UNNAMED_KINDS:
                return owners == 1 and _is_first_at_its_address(lock)
            return wait.holder_seen == holder
        its_wait = self.waiting.get(holder)
        if its_wait is not None and its_wait.duration_s > wait.duration_s + _ACCURACY_S:
            return wait.holder_seen in (0, holder)
        return True

    def _writer_requests(self, wait: Wait) -> Iterator[Request]:
        """A reader of a lock that prefers writers waits for the writers that came before it."""
        if wait.duration_s <= _ACCURACY_S:
            return
        for duration_s, writer in self._longest_writers(wait.lock):
            if duration_s + _ACCURACY_S > wait.duration_s:
                yield self._single(BlockReason.BEHIND, wait.lock, writer)

    def _longest_writers(self, lock: int) -> list[tuple[float, int]]:
        """Return durations and tids of some waiting writers, longest first: all wait alike."""
        if lock not in self._writers:
            writers = [
                (wait.duration_s, tid)
                for tid in self._waiters[lock]
                if not (wait := self.waiting[tid]).shared and wait.duration_s > _ACCURACY_S
            ]
            self._writers[lock] = sorted(writers, reverse=True)[:_MAX_WRITERS]
        return self._writers[lock]

    def _gone_owner_request(self, waiter: int, wait: Wait, lock: Lock | None) -> Iterator[Request]:
        """The list of a thread that ended may be lost, and a fork leaves lists behind. The mutex
        names its owner still, or named it when the wait began."""
        owner = wait.holder_seen
        if not owner or owner in self.living or (wait.pshared and owner not in self._lost):
            return
        # A sampled wait that began before the first sample may have lasted for any time.
        if wait.duration_s < _MIN_DOUBTFUL_S and not wait.is_lower_bound:
            return
        if lock is not None and not lock.freed_at_exit and not lock.foreign_releases:
            # The owner may be the thread that forked. The first thread of the child goes on as it.
            is_left = owner in self._left_by_fork and waiter == self._first_thread
            doubt = "" if is_left or owner in self._lost else LIST_GONE
            yield self._single(BlockReason.ABANDONED, wait.lock, owner, doubt=doubt)

    # ---- waits that one of several threads can end ----

    def _one_of(
        self,
        reason: BlockReason,
        wait: Wait,
        tids: Set[int],
        doubt: str = "",
        uses: Set[tuple[int, int, int]] = frozenset(),
    ) -> Iterator[Request]:
        if doubt and wait.duration_s < _MIN_DOUBTFUL_S:
            return
        key = (reason, wait.lock, doubt)
        if key not in self._requests:
            self._requests[key] = Request(reason, tids, is_or=True, doubt=doubt, uses=uses)
        yield self._requests[key]

    def _semaphore_requests(self, waiter: int, wait: Wait) -> Iterator[Request]:
        lock, users = self._locks.get(wait.lock), self._users.get(wait.lock, {})
        if lock is None or not self._uses_known:
            return
        units = self._units(wait.lock)
        if lock.foreign_releases or min(units.values(), default=0) < 0:
            yield from self._signal_requests(wait, "post")
            return
        holders, total = {tid for tid, count in units.items() if count}, sum(units.values())
        if not holders or lock.first_value not in (None, total):
            return  # another thread has units, or one is on its way
        if lock.units_out != total:
            return  # threads that ended got units, or that was not measured
        doubt = self._semaphore_doubt(lock, wait, waiter, holders)
        if doubt is None or (doubt and waiter in holders):
            return  # as in a queue, or in a condition made of semaphores: any thread may post it
        reason = BlockReason.GOT if holders & self.living else BlockReason.ABANDONED
        # One unit has a known holder. A thread that posts one of several units may have another.
        posters = {tid for tid in users if users[tid].signals and tid in self.living}
        providers = holders if lock.first_value == 1 else holders | posters
        uses = frozenset((tid, use.acquisitions, use.signals) for tid, use in users.items())
        yield from self._one_of(reason, wait, providers, doubt, uses)

    def _request_at_fork(self, waiter: int, wait: Wait) -> Request | None:
        """Return the request for a semaphore that other threads of the parent had at the fork.

        The parent used the semaphore as a lock, and no thread of the child has got or posted it.
        Only the thread that forked may have got it before the fork, and may post it.
        """
        lock = self._locks.get(wait.lock)
        if lock is None or lock.parent_posts < _MIN_POSTS or lock.generation or wait.pshared:
            return None
        if lock.foreign_releases or not self._complete or not self._uses_known:
            return None
        if lock.life_acquisitions != 0 or lock.life_signals != 0:
            return None
        if self.living - self._in_peers == {waiter}:
            return Request(BlockReason.AT_FORK, frozenset(), is_or=True)
        if lock.parent_posts < _MIN_POSTS_ALONE or not self._first_thread:
            return None
        providers = frozenset({self._first_thread} - {waiter})
        return Request(BlockReason.AT_FORK, providers, is_or=True)

    def _semaphore_doubt(
        self, lock: Lock, wait: Wait, waiter: int, holders: Set[int]
    ) -> str | None:
        """Return why the threads with units may not hold a lock: "" if they do, None if nothing
        suggests so."""
        if wait.pshared:
            return OTHER_PROCESS
        if not self._complete:
            return NOT_COMPLETE
        if lock.first_value is None:
            return NOT_COUNTED
        if self._is_given_back(lock, waiter, holders):
            return ""
        return NOT_GIVEN_BACK if holders & self.living else None

    def _units(self, lock: int) -> dict[int, int]:
        """Return by tid how many units of a semaphore each thread has got and not posted."""
        if lock not in self._units_cache:
            users = self._users.get(lock, {})
            units = {tid: use.acquisitions - use.signals for tid, use in users.items()}
            self._units_cache[lock] = units
        return self._units_cache[lock]

    def _signals(self, lock: int) -> dict[int, int]:
        """Return by tid how often threads have signalled a lock, without those that never did."""
        if lock not in self._signals_cache:
            users = self._users.get(lock, {})
            signals = {tid: use.signals for tid, use in users.items() if use.signals}
            self._signals_cache[lock] = signals
        return self._signals_cache[lock]

    def _is_given_back(self, lock: Lock, waiter: int, holders: Set[int]) -> bool:
        """Return whether the threads that have a semaphore hold it as a lock and will post it.

        A thread that gets a place in a queue signals another thread. A thread that waits for a
        semaphore that it has itself may get a unit from any thread.
        """
        users, of_others = self._users[lock.id], waiter not in holders and holders <= self.living
        posts = min(users[tid].signals for tid in holders)
        if holders & self._signallers:
            return posts >= (_MIN_POSTS if of_others else _MIN_POSTS_ALONE)
        return posts > 0 or (lock.first_value == 1 and of_others)

    def _signal_requests(self, wait: Wait, verb: str) -> Iterator[Request]:
        """The threads that signalled a lock may do so again. If one of them has ended, another
        thread may follow it, and there is no request."""
        lock = self._locks.get(wait.lock)
        sent = lock.signals_in_life if lock is not None else None
        if sent is None or not self._uses_known or wait.pshared:
            return
        signals = self._signals(wait.lock)
        all_live = signals.keys() <= self.living and sent <= sum(signals.values())
        if signals and all_live:
            doubt = MAY_SIGNAL.format(verb=verb, have=self._have)
            yield from self._one_of(BlockReason.SIGNALS, wait, signals.keys(), doubt)

    def _barrier_requests(self, wait: Wait) -> Iterator[Request]:
        """A thread that has not come may come, and a living thread may start such a thread."""
        here, users = self._waiters[wait.lock], self._users.get(wait.lock, {})
        if wait.pshared or len(here) >= wait.parties:
            return
        yield from self._one_of(BlockReason.ABSENT, wait, self.living.difference(here))
        others = {tid for tid in users if users[tid].acquisitions and tid in self.living}
        if len(others.union(here)) >= wait.parties and self._uses_known:
            doubt = MAY_COME.format(have=self._have)
            yield from self._one_of(BlockReason.ABSENT, wait, others.difference(here), doubt)


def _is_first_at_its_address(lock: Lock | None) -> bool:
    """Return whether no list can name an earlier lock at the same address."""
    return lock is not None and not lock.generation


def _can_block(wait: Wait) -> bool:
    return not wait.timed and wait.lock != 0  # the id 0 stands for many locks
