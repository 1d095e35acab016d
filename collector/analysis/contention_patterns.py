"""Shapes of contention that have a name, each with its figures and what to do about it.

Told only where it is clear: a threshold that is just missed says nothing. Rates are those of the
last interval; of a first look, which has none, those of the whole time. Every finder says in its
docstring what has to be seen. What each means is in docs/patterns.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from locktop.collector.format.units import duration
from locktop.collector.model import (
    CONTENTION_KINDS,
    ActivityState,
    Contents,
    Kind,
    Lock,
    LockRates,
    Pattern,
    PatternName,
    Thread,
    ThreadActivity,
    ThreadState,
)

ADVICE = {
    PatternName.CONVOY: "Take it less often and do more each time, or split what it guards:"
    " handing it on takes longer than what is done under it.",
    PatternName.SERIALISED: "Do less while holding it, or split what it guards: more threads make"
    " this no faster.",
    PatternName.THUNDERING_HERD: "Where one thread is enough, use pthread_cond_signal instead of"
    " pthread_cond_broadcast, or give threads that wait for different things a condition each.",
    PatternName.STARVED_WRITER: "Make it prefer writers"
    " (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), or let readers overlap less.",
    PatternName.LONG_HOLD: "Make the call that sleeps before the lock is taken or after it is given"
    " back.",
    PatternName.FALSE_IDLE: "Look at what the threads that signal it wait for: that lock keeps"
    " these from their work too.",
    PatternName.OVERSUBSCRIBED: "Run no more threads that compute than there are CPUs: one that has"
    " a lock and no CPU keeps all the others waiting.",
    PatternName.HIGH_RATE: "Take it once for many steps, or keep a part for each thread: nobody"
    " waits for it, but taking it so often costs time by itself.",
}

_SHORTEST_S = 0.1  # the rates of less say little

_CONVOY_WAITERS = 3
_CONVOY_CONTENDED = 0.5  # of the acquisitions
_CONVOY_UNHELD = 0.4  # of the wait
_CONVOY_HOLD_S = 1e-4  # mean, at most
_CONVOY_WAIT = 0.5  # seconds waited a second
_CONVOY_RATE = 10.0  # acquisitions a second

_SERIALISED_HELD = 0.9  # of the time
_SERIALISED_WAITERS = 3
_SERIALISED_THREADS = 0.5  # of those that are not idle
_SERIALISED_CONTENDED = 0.5  # of the acquisitions
_SERIALISED_RATE = 2.0  # acquisitions a second: one single long hold is none

_HERD_WAITERS = 4
_HERD_EACH = 4.0  # woken by one signal
_HERD_RATE = 100.0  # wake-ups a second
_HERD_LEAST = 500.0  # wake-ups seen: time on a CPU is counted in ticks of 10 ms
_HERD_CPU_S = 1e-4  # of a woken thread until it sleeps again, at most

_STARVED_S = 1.0
_STARVED_BEFORE_S = 0.1  # threads are read one after the other
_LONG_HOLD_S = 0.1
_LONG_HOLD_ON_CPU = 0.5  # of the hold, at most
_FALSE_IDLE_S = 0.1
_FALSE_IDLE_SIGNALS = 0.9  # of all, by threads that live
_OVERSUBSCRIBED = 2  # threads for a CPU
_OVERSUBSCRIBED_WAITED = 0.5  # of the last interval
_HIGH_RATE = 1e6  # acquisitions a second
_HIGH_RATE_CONTENDED = 0.001  # of them

#: Of these only one thread has it at a time.
_EXCLUSIVE = frozenset({Kind.MUTEX, Kind.SPIN})


def patterns(snapshot: Contents) -> tuple[Pattern, ...]:
    """Return what is seen in a snapshot whose waits are told apart, in the order of PatternName.

    None of a process that has ended, of one whose library is dormant, and in a look less than
    100 ms after the one before."""
    seen = _Seen(snapshot)
    if snapshot.ended or snapshot.level == "dormant" or seen.period_s < _SHORTEST_S:
        return ()
    return tuple(found for find in _FINDERS for found in find(seen))


class _Seen:
    """One snapshot, indexed."""

    def __init__(self, snapshot: Contents) -> None:
        self.snapshot = snapshot
        deadlocked = {edge.tid for found in snapshot.deadlocks for edge in found.cycle}
        deadlocked.update(tid for found in snapshot.deadlocks for tid in found.stuck)
        self._contended: dict[int, list[Thread]] = {}
        self._idle: dict[int, list[Thread]] = {}
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and wait.lock and thread.alive and thread.tid not in deadlocked:
                at = self._idle if wait.idle else self._contended
                at.setdefault(wait.lock, []).append(thread)

    @cached_property
    def threads(self) -> dict[int, Thread]:
        return {thread.tid: thread for thread in self.snapshot.threads}

    @cached_property
    def locks(self) -> dict[int, Lock]:
        return {lock.id: lock for lock in self.snapshot.locks}

    @property
    def contended(self) -> Iterator[tuple[Lock, list[Thread]]]:
        """The locks that are waited for now in contention, with those who do. None that threads
        give back which do not hold it: whose it is then is not certain."""
        return (
            (self.locks[lock], waiters)
            for lock, waiters in self._contended.items()
            if lock in self.locks and not self.locks[lock].foreign_releases
        )

    @property
    def idle(self) -> Iterator[tuple[Lock, list[Thread]]]:
        """What is waited for by threads that want work, with those who do."""
        return ((self.locks[id_], found) for id_, found in self._idle.items() if id_ in self.locks)

    @property
    def period_s(self) -> float:
        """What the rates are of."""
        return self.snapshot.interval_s or self.snapshot.duration_s

    def rates(self, lock: Lock) -> LockRates:
        """Return the lock's rates, see the top of this file."""
        if self.snapshot.interval_s > 0:
            return lock.rates
        per_s = 1.0 / self.period_s
        unheld = sum(blame.wait_s for blame in lock.blame if not blame.tid and not blame.site)
        return LockRates(
            acquisitions=lock.acquisitions * per_s,
            contended=lock.contended * per_s,
            wait=lock.wait_s * per_s,
            hold=lock.hold_s * per_s,
            signals=lock.signals * per_s,
            unheld=unheld * per_s,
        )

    def cpu(self, thread: Thread) -> float:
        """Return the seconds on a CPU for each second of the time that the rates are of."""
        if self.snapshot.interval_s > 0:
            return thread.cpu_share
        return thread.cpu_s / self.period_s


def _convoys(seen: _Seen) -> Iterator[Pattern]:
    """At least 3 threads wait, half of the acquisitions had to, the lock is held for 100 us at most
    each time, and in 40 % of the wait (of at least 0.5 s a second) nobody had it: it had been given
    back, and who comes next had not woken up.

    Where it is not known all along who holds it, there are none."""
    if seen.snapshot.level == "counting" or not seen.snapshot.complete:
        return
    for lock, waiters in seen.contended:
        rates = seen.rates(lock)
        if (
            len(waiters) < _CONVOY_WAITERS
            or not lock.hold_timed
            or rates.acquisitions < _CONVOY_RATE
            or rates.wait < _CONVOY_WAIT
            or any(thread.waiting_for.pshared for thread in waiters if thread.waiting_for)
        ):
            continue
        hold_s = rates.hold / rates.acquisitions
        contended, unheld = rates.contended / rates.acquisitions, rates.unheld / rates.wait
        if contended >= _CONVOY_CONTENDED and unheld >= _CONVOY_UNHELD and hold_s <= _CONVOY_HOLD_S:
            yield _pattern(
                PatternName.CONVOY, lock, waiters,
                f"{len(waiters)} threads wait; {_percent(contended)} of"
                f" {_number(rates.acquisitions)} acquisitions a second had to; nobody had it in"
                f" {_percent(unheld)} of the wait; a hold takes {duration(hold_s)}",
            )  # fmt: skip


def _serialised(seen: _Seen) -> Iterator[Pattern]:
    """A mutex or spin lock is held 90 % of the time, taken twice a second or more, half of the
    acquisitions had to wait, at least 3 threads do, and these and its holder are at least half of
    all that are not idle."""
    busy = {
        thread.tid
        for thread in seen.snapshot.threads
        if thread.alive and thread.state is not ThreadState.IDLE
    }
    for lock, waiters in seen.contended:
        rates = seen.rates(lock)
        if (
            lock.kind not in _EXCLUSIVE
            or len(waiters) < _SERIALISED_WAITERS
            or rates.hold < _SERIALISED_HELD
            or rates.acquisitions < _SERIALISED_RATE
            or rates.contended < rates.acquisitions * _SERIALISED_CONTENDED
        ):
            continue
        here = {*lock.holders, *(thread.tid for thread in waiters)}
        of = len(busy | here)
        if len(here) >= of * _SERIALISED_THREADS:
            yield _pattern(
                PatternName.SERIALISED, lock, waiters,
                f"held {_percent(min(rates.hold, 1.0))} of the time; {len(here)} of {of} threads"
                f" that are not idle have it or wait for it;"
                f" {_percent(rates.contended / rates.acquisitions)} of"
                f" {_number(rates.acquisitions)} acquisitions a second had to wait",
            )  # fmt: skip


def _herds(seen: _Seen) -> Iterator[Pattern]:
    """At least 4 threads wait for a condition, none with a time limit; at least 100 waits a second
    return (and 500 in all), 4 for each signal or broadcast; and those threads use 100 us of a CPU
    at most each time: too little to have found work."""
    for lock, waiters in seen.idle:
        if lock.kind is not Kind.COND or len(waiters) < _HERD_WAITERS:
            continue
        rates = seen.rates(lock)
        if (
            rates.signals <= 0
            or rates.acquisitions < _HERD_RATE
            or rates.acquisitions * seen.period_s < _HERD_LEAST
            or rates.acquisitions < rates.signals * _HERD_EACH
            or any(
                thread.waiting_for.timed or thread.waiting_for.pshared
                for thread in waiters
                if thread.waiting_for
            )
        ):
            continue
        cpu_s = sum(seen.cpu(thread) for thread in waiters) / rates.acquisitions
        if cpu_s < _HERD_CPU_S:
            yield _pattern(
                PatternName.THUNDERING_HERD, lock, waiters,
                f"{len(waiters)} threads wait; {_number(rates.acquisitions)} waits a second return"
                f" for {_number(rates.signals)} signals or broadcasts,"
                f" {rates.acquisitions / rates.signals:.1f} for each; a woken thread uses less"
                f" than {duration(_HERD_CPU_S)} of a CPU",
            )  # fmt: skip


def _starved_writers(seen: _Seen) -> Iterator[Pattern]:
    """A writer has waited for 1 s for an rwlock that does not prefer writers, and all who read it
    now are known to have come after the writer, by 100 ms at least."""
    for lock, waiters in seen.contended:
        if lock.kind is not Kind.RWLOCK or lock.writers_first:
            continue
        readers_s = _read_for_s(seen, lock)
        if readers_s is None:
            continue
        least_s = max(_STARVED_S, readers_s + _STARVED_BEFORE_S)
        starved = [thread for thread in waiters if _wants_to_write(thread, least_s)]
        if starved:
            yield _pattern(
                PatternName.STARVED_WRITER, lock, starved,
                f"{_counted(len(starved), 'writer')} {_verb(starved, 'waits')}, for up to"
                f" {duration(_longest(starved))}; {_counted(len(lock.holders), 'thread')} read"
                f"{'s' * (len(lock.holders) == 1)} it, for {duration(readers_s)} at most: later"
                " ones than the writer",
            )  # fmt: skip


def _wants_to_write(thread: Thread, least_s: float) -> bool:
    wait = thread.waiting_for
    return wait is not None and not wait.shared and wait.duration_s >= least_s


def _read_for_s(seen: _Seen, lock: Lock) -> float | None:
    """Return how long the first of the present readers has had it, None where that is not known of
    each, or nobody reads it."""
    longest_s: float | None = None
    for tid in lock.holders:
        thread = seen.threads.get(tid)
        holds = thread.holds if thread is not None else ()
        held = next((one for one in holds if one.lock == lock.id), None)
        if held is None or not held.shared or held.duration_s is None:
            return None
        longest_s = max(longest_s or 0.0, held.duration_s)
    return longest_s


def _long_holds(seen: _Seen) -> Iterator[Pattern]:
    """A lock that others wait for has been held for 100 ms by one thread, which waits for nothing
    that is known and which the kernel shows asleep; of the hold it was half on a CPU at most."""
    for lock, waiters in seen.contended:
        holder = seen.threads.get(lock.holders[0]) if len(lock.holders) == 1 else None
        now = lock.holder_activity
        if holder is None or now is None or not _sleeps(seen.snapshot, holder, now):
            continue
        duration_s, is_lower_bound = _held_s(seen, lock, holder)
        on_cpu_s = holder.cpu_share * seen.snapshot.interval_s
        if duration_s >= _LONG_HOLD_S and on_cpu_s <= duration_s * _LONG_HOLD_ON_CPU:
            yield _pattern(
                PatternName.LONG_HOLD, lock, [holder],
                f"held for {'at least ' * is_lower_bound}{duration(duration_s)} by thread"
                f" {holder.tid}, which sleeps in {now.what or 'the kernel'} now;"
                f" {_counted(len(waiters), 'thread')} {_verb(waiters, 'waits')} for it,"
                f" for up to {duration(_longest(waiters))}",
            )  # fmt: skip


def _sleeps(snapshot: Contents, thread: Thread, now: ThreadActivity) -> bool:
    """Whether the holder sleeps in a system call that is no wait for a lock."""
    return (
        now.tid == thread.tid
        and now.doing is ActivityState.BLOCKED
        and not now.call.startswith("futex")
        and thread.tid not in snapshot.unobserved_waiters
    )


def _held_s(seen: _Seen, lock: Lock, holder: Thread) -> tuple[float, bool]:
    """Return for how long the thread has had the lock, and whether that is the least: nobody took
    one meanwhile that was not taken in the whole interval."""
    known = next((held.duration_s for held in holder.holds if held.lock == lock.id), None)
    if known is not None:
        return known, False
    return seen.snapshot.interval_s if not lock.rates.acquisitions else 0.0, True


def _false_idle(seen: _Seen) -> Iterator[Pattern]:
    """Threads have waited for 100 ms for a condition or a semaphore, and every thread that has
    signalled or posted it has waited as long in contention. Those that live did 90 % of that."""
    if any(thread.uses is None for thread in seen.snapshot.threads if thread.alive):
        return
    signals: dict[int, dict[int, int]] = {}  # by lock and tid
    for thread in seen.snapshot.threads if seen.idle else ():
        for use in (thread.uses or ()) if thread.alive else ():
            if use.signals:
                signals.setdefault(use.lock, {})[thread.tid] = use.signals
    for lock, waiters in seen.idle:
        waiters = [thread for thread in waiters if _waits_s(thread) >= _FALSE_IDLE_S]
        signalled = signals.get(lock.id, {})
        by = [seen.threads[tid] for tid in signalled]
        if (
            waiters
            and by
            and lock.kind in (Kind.COND, Kind.SEM)
            and sum(signalled.values()) >= lock.signals * _FALSE_IDLE_SIGNALS
            and all(_is_held_up(thread) for thread in by)
        ):
            behind = next(thread.waiting_for.lock for thread in by if thread.waiting_for)
            named = seen.locks[behind].name if behind in seen.locks else f"lock {behind}"
            others = " or others" if len({_waits_for(thread) for thread in by}) > 1 else ""
            yield _pattern(
                PatternName.FALSE_IDLE, lock, waiters,
                f"{_counted(len(waiters), 'thread')} {_verb(waiters, 'waits')} for work, for up to"
                f" {duration(_longest(waiters))}; {_counted(len(by), 'thread')} that"
                f" {_verb(by, 'signals')} it {_verb(by, 'waits')} for {named}{others}, for at least"
                f" {duration(min(map(_waits_s, by)))}",
            )  # fmt: skip


def _is_held_up(thread: Thread) -> bool:
    wait = thread.waiting_for
    return wait is not None and not wait.idle and wait.duration_s >= _FALSE_IDLE_S


def _oversubscribed(seen: _Seen) -> Iterator[Pattern]:
    """More than 2 threads for each CPU that the process may use want one, while threads wait for
    locks. Lately each of them has been on one, and has waited for less than half of the time: those
    that have only just been woken do not count."""
    cpus = seen.snapshot.process.cpus
    wanting = [thread for thread in seen.snapshot.threads if _computes(thread)]
    waiting = [thread for _, waiters in seen.contended for thread in waiters]
    if cpus and waiting and len(wanting) > cpus * _OVERSUBSCRIBED:
        had = sum(thread.cpu_share for thread in wanting)
        yield _pattern(
            PatternName.OVERSUBSCRIBED, None, wanting,
            f"{len(wanting)} threads want one of {_counted(cpus, 'CPU')}, of which they had"
            f" {had:.1f} lately; {_counted(len(waiting), 'thread')} {_verb(waiting, 'waits')} for"
            " locks",
        )  # fmt: skip


def _computes(thread: Thread) -> bool:
    """Whether it wants a CPU now and has wanted one lately."""
    return (
        thread.state in (ThreadState.RUNNING, ThreadState.RUNNABLE)
        and thread.cpu_share > 0
        and thread.wait_share + thread.idle_share < _OVERSUBSCRIBED_WAITED
    )


def _high_rates(seen: _Seen) -> Iterator[Pattern]:
    """A lock is taken a million times a second, and less than 0.1 % of that has to wait."""
    least = _HIGH_RATE * seen.period_s  # there may be many locks, few of which are taken so often
    for lock in seen.snapshot.locks:
        if lock.acquisitions < least or not lock.id or lock.kind not in CONTENTION_KINDS:
            continue
        rates = seen.rates(lock)
        if (
            rates.acquisitions >= _HIGH_RATE
            and rates.contended < rates.acquisitions * _HIGH_RATE_CONTENDED
        ):
            yield _pattern(
                PatternName.HIGH_RATE, lock, [],
                f"taken {_number(rates.acquisitions)} times a second, of which"
                f" {_number(rates.contended)} had to wait",
            )  # fmt: skip


_FINDERS: tuple[Callable[[_Seen], Iterator[Pattern]], ...] = (
    _convoys,
    _serialised,
    _herds,
    _starved_writers,
    _long_holds,
    _false_idle,
    _oversubscribed,
    _high_rates,
)


def _pattern(name: PatternName, lock: Lock | None, threads: list[Thread], evidence: str) -> Pattern:
    tids = tuple(sorted(thread.tid for thread in threads))
    return Pattern(name, lock.id if lock is not None else 0, tids, evidence, ADVICE[name])


def _waits_for(thread: Thread) -> int:
    return thread.waiting_for.lock if thread.waiting_for is not None else 0


def _waits_s(thread: Thread) -> float:
    return thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0


def _longest(threads: list[Thread]) -> float:
    return max(map(_waits_s, threads))


def _percent(part: float) -> str:
    """Cut, not rounded: 99.9 % is not all."""
    return f"{int(100 * min(part, 1.0))} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _verb(threads: list[Thread], verb: str) -> str:
    """``verb`` as it is said of one thread."""
    return verb if len(threads) == 1 else verb.removesuffix("s")
