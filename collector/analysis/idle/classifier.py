"""Classifies waits as idle (for work) or contended, and gives threads and locks their states."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec.structs import replace

from locktop.collector.analysis import time_split
from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.futex_types import FutexTypes
from locktop.collector.analysis.idle.rules import IdleRule, Rules, Waker
from locktop.collector.analysis.semaphore_ownership import SemaphoreLocks
from locktop.collector.model import (
    CONTENTION_KINDS,
    BlockReason,
    Contents,
    Draft,
    Frame,
    Kind,
    Lock,
    Snapshot,
    Thread,
    ThreadState,
    Wait,
    WaitStack,
)

# Letters of proc_pid_stat(5). R may mean "wants a CPU" too: only a second file per thread would
# show the difference.
_BY_LETTER = {"R": ThreadState.RUNNING, "S": ThreadState.IDLE}
# The class looks a member up for longer than a dict takes.
_OTHER, _IDLE, _WAITING = ThreadState.OTHER, ThreadState.IDLE, ThreadState.WAITING
_BY_KIND = {
    kind: ThreadState.WAITING if kind in CONTENTION_KINDS else ThreadState.IDLE for kind in Kind
}

#: A thread that waits in a deadlock, or behind one, is never idle, whatever the rules say.
_DEADLOCKED = IdleRule(False, "deadlock", "waits in a deadlock, or behind one")
#: The reasons of a certain cycle over a semaphore that is a lock.
_AS_LOCKS = frozenset({BlockReason.GOT, BlockReason.AT_FORK})
#: The counters are read one after the other. A smaller part of a wait without a stack is no wait.
_MIN_WITHOUT_STACK = 0.01


def state(waits_for: Kind | None, letter: str) -> ThreadState:
    """Return the state of a thread by the kind of its wait alone.

    Args:
        waits_for: The kind of the wait, None for a thread that waits for no lock.
        letter: The state in /proc/PID/stat, "" unknown.
    """
    return _BY_LETTER.get(letter, _OTHER) if waits_for is None else _BY_KIND[waits_for]


def most_wait_first(lock: Lock) -> tuple[bool, float, int, int, int]:
    """Return the sort key of the locks of a snapshot: contended locks by wait, then idle locks."""
    acquisitions = lock.acquisitions or 0  # not measured: of a sampled process, so of no lock
    return lock.idle, -lock.counted_wait_s, -lock.contended, -acquisitions, lock.id


class Classifier:
    """Applies the idle rules to one scan after the other."""

    def __init__(self, rules: Rules | None = None) -> None:
        """``rules``: None for the shipped rules."""
        self._rules = rules or Rules()
        self._types = FutexTypes(self._rules)
        self._candidates: dict[tuple[Kind, int], tuple[Sequence[Frame], tuple[IdleRule, ...]]] = {}
        self._locks: dict[int, tuple[Lock, Lock]] = {}  # by id: before and after classify()
        self._stacks: Mapping[int, tuple[Frame, ...]] = {}
        self._semaphores = SemaphoreLocks()
        self._as_locks: frozenset[int] = frozenset()
        self._crowded: frozenset[int] = frozenset()

    def classify(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with all waits classified, see ``annotate``."""
        draft = snapshot.draft()
        self.annotate(draft)
        return draft.snapshot()

    def annotate(self, snapshot: Draft) -> None:
        """Classify all waits of a draft.

        The states and shares of the threads, and the idle times of the locks, follow from the
        waits. A thread or lock that does not change stays the same object.
        """
        self._types.annotate(snapshot)
        self._stacks, self._crowded = snapshot.stacks, snapshot.crowded
        held = _semaphores_in_cycles(snapshot) | _probably_held(snapshot)
        as_locks, former = self._semaphores.observe(snapshot) | held, self._as_locks
        if as_locks != former:
            self._as_locks, self._locks = as_locks, {}
        self._candidates = {
            key: cached
            for key, cached in self._candidates.items()
            if snapshot.stacks.get(key[1]) is cached[0]
        }
        threads, rules = self._threads(snapshot)
        as_locks = self._semaphores.observe_rules(snapshot, rules) | held
        if as_locks != self._as_locks:
            self._as_locks, self._locks = as_locks, {}
            threads, rules = self._threads(snapshot)
        contended = {
            wait.lock
            for thread in threads
            if (wait := thread.waiting_for) is not None and not wait.idle
        }
        stuck_s = _stuck_s(threads, rules)
        locks = [
            self._lock(lock, self._locks.get(lock.id), contended, stuck_s, snapshot.interval_s)
            for lock in snapshot.locks
        ]
        pairs = list(zip(snapshot.locks, locks, strict=True))
        self._locks = {pair[0].id: pair for pair in pairs}
        if any(before.idle is not after.idle for before, after in pairs):
            locks.sort(key=most_wait_first)
        stuck = dict.fromkeys(_stuck(snapshot), _DEADLOCKED)
        why = {tid: stuck.get(tid, rule).name for tid, rule in rules.items()}
        snapshot.threads, snapshot.locks, snapshot.why = tuple(threads), tuple(locks), why

    def waker(self, type_: str) -> Waker:
        """Return what a thread that wakes the waiters of a futex of this type had of it."""
        return self._rules.waker(type_)

    def classify_stack(self, frames: Sequence[Frame], thread: str) -> tuple[str, IdleRule | None]:
        """Classify a wait in a futex call by the functions of its stack.

        Args:
            frames: The stack, innermost frame first.
            thread: The name of the thread.

        Returns:
            The type of the futex, "" unknown; and the rule that the wait matches, None if no rule
            matches but a rule of the kind alone.
        """
        candidates = self._rules.candidates(Kind.FUTEX, frames)
        rule = rules.choose(candidates, "", thread, held=False)
        return self._types.stack_type(frames), rule if rule.functions or rule.thread else None

    # ---- threads ----

    def _threads(self, snapshot: Contents) -> tuple[list[Thread], dict[int, IdleRule]]:
        """Return the threads with classified waits, and by tid the rules that the waits match. The
        wait of a stuck thread is contended, whatever its rule says."""
        stuck = _stuck(snapshot)
        names = {lock.id: lock.name for lock in snapshot.locks}
        threads, rules = [], {}
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None:
                rule = self._rule_of(thread, wait, names.get(wait.lock, ""), snapshot)
                rules[thread.tid] = rule
                idle = (_DEADLOCKED if thread.tid in stuck else rule).idle
                if wait.idle is not idle or thread.state is not (_IDLE if idle else _WAITING):
                    thread = _classify_thread(thread, wait, idle, snapshot.interval_s)
            threads.append(thread)
        return threads, rules

    def _rule_of(self, thread: Thread, wait: Wait, lock: str, snapshot: Contents) -> IdleRule:
        if not wait.stack and wait.site in snapshot.sites:
            candidates = self._rules.candidates(wait.kind, (snapshot.sites[wait.site],))
        else:
            candidates = self._matching(wait.kind, wait.stack)
            if len(candidates) == 1:
                return candidates[0]
        several = wait.lock in self._crowded
        is_held = bool(wait.holders) or wait.lock in self._as_locks
        return rules.choose(candidates, lock, thread.name, is_held, several)

    def _matching(self, kind: Kind, stack: int) -> tuple[IdleRule, ...]:
        cached = self._candidates.get((kind, stack))
        if cached is None:
            frames = self._stacks.get(stack, ())
            cached = self._candidates[kind, stack] = frames, self._rules.candidates(kind, frames)
        return cached[1]

    # ---- locks ----

    def _lock(
        self,
        lock: Lock,
        former: tuple[Lock, Lock] | None,
        contended: Container[int],
        stuck_s: Mapping[int, float],
        interval_s: float,
    ) -> Lock:
        """Return a lock with classified waits.

        Args:
            lock: the lock.
            former: the lock before and after the last scan.
            contended: ids of the locks with a contended wait.
            stuck_s: as ``_stuck_s`` returns it.
            interval_s: seconds since the last scan.
        """
        if former is not None and former[0] is lock and not lock.waiters:
            return former[1]
        stacks = tuple([self._wait_stack(lock, entry) for entry in lock.wait_stacks])
        idle_s = max(0.0, self._idle_s(lock, stacks) - stuck_s.get(lock.id, 0.0))
        waited = bool(stacks) or lock.wait_s > 0
        idle = (
            lock.id not in contended
            and (idle_s >= lock.wait_s if waited else self._stackless_rule(lock).idle)
            and all(entry.idle for entry in stacks)
        )
        as_lock = lock.id in self._as_locks
        classified = lock
        if (idle, idle_s, as_lock, stacks) != (
            lock.idle, lock.idle_s, lock.used_as_lock, lock.wait_stacks,
        ):  # fmt: skip
            classified = replace(
                lock, idle=idle, idle_s=idle_s, wait_stacks=stacks, used_as_lock=as_lock
            )
        if former is not None and 0 < idle_s < lock.wait_s:
            grown_s = max(0.0, classified.counted_wait_s - former[1].counted_wait_s)
            rate = grown_s / interval_s if interval_s else 0.0
            classified = replace(classified, rates=replace(classified.rates, wait=rate))
        return classified

    def _wait_stack(self, lock: Lock, entry: WaitStack) -> WaitStack:
        candidates = self._matching(lock.kind, entry.stack)
        idle = rules.choose(
            candidates, lock.name, None, lock.id in self._as_locks, lock.id in self._crowded
        ).idle
        return entry if entry.idle is idle else replace(entry, idle=idle)

    def _idle_s(self, lock: Lock, stacks: Sequence[WaitStack]) -> float:
        """Return the idle part of a lock's wait in seconds. The result is exactly all or nothing if
        all waits have one class."""
        kinds = {entry.idle for entry in stacks}
        rest = lock.wait_s - sum(entry.wait_s for entry in stacks)
        if not stacks or rest > lock.wait_s * _MIN_WITHOUT_STACK:
            kinds.add(self._stackless_rule(lock).idle)
        if len(kinds) == 1:
            return lock.wait_s if True in kinds else 0.0
        idle_s = sum(entry.wait_s for entry in stacks if entry.idle)
        return min(lock.wait_s, idle_s + (max(rest, 0.0) if self._stackless_rule(lock).idle else 0))

    def _stackless_rule(self, lock: Lock) -> IdleRule:
        candidates = self._matching(lock.kind, 0)
        as_lock, several = lock.id in self._as_locks, lock.id in self._crowded
        return rules.choose(candidates, lock.name, None, as_lock, several)


def _probably_held(snapshot: Contents) -> frozenset[int]:
    return frozenset({lock.id for lock in snapshot.locks if lock.holders_probable})


def _semaphores_in_cycles(snapshot: Contents) -> frozenset[int]:
    """Return the ids of the semaphores that are locks because they are part of a certain cycle."""
    certain = [deadlock for deadlock in snapshot.deadlocks if deadlock.certain]
    edges = [edge for deadlock in certain for edge in deadlock.cycle]
    return frozenset(edge.waits_for for edge in edges if edge.reason in _AS_LOCKS)


def _stuck(snapshot: Contents) -> set[int]:
    """Return the tids of the threads that wait in a deadlock or hang, or behind a certain one."""
    stuck = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    stuck.update(
        tid for deadlock in snapshot.deadlocks if deadlock.certain for tid in deadlock.stuck
    )
    if snapshot.hang is not None and snapshot.hang.certain:
        stuck.update(snapshot.hang.tids)
    return stuck


def _stuck_s(threads: Sequence[Thread], rules: Mapping[int, IdleRule]) -> dict[int, float]:
    """Return by lock the seconds of the waits of stuck threads that rules call waits for work."""
    stuck_s: dict[int, float] = {}
    for thread in threads:
        wait = thread.waiting_for
        if wait is not None and not wait.idle and rules[thread.tid].idle:
            stuck_s[wait.lock] = stuck_s.get(wait.lock, 0.0) + wait.duration_s
    return stuck_s


def _classify_thread(thread: Thread, wait: Wait, idle: bool, interval_s: float) -> Thread:
    """Return the thread with its wait classified. The part of the wait in the last interval moves
    from one share to the other. Waits that have ended stay in the share of their kind."""
    state = _IDLE if idle else _WAITING
    if thread.state is not _WAITING and thread.state is not _IDLE:
        state = thread.state
    if wait.idle is idle:
        return thread if state is thread.state else replace(thread, state=state)
    moved = min(wait.duration_s / interval_s, 1.0) if interval_s and thread.alive else 0.0
    share = thread.wait_share if idle else thread.idle_share
    moved = min(moved, share)
    time = time_split.reclassify(thread.time, moved / share if share else 0.0, idle)
    wait_share, idle_share = thread.wait_share, thread.idle_share
    if idle:
        wait_share, idle_share = time_split.remainder(wait_share, moved), idle_share + moved
    else:
        wait_share, idle_share = wait_share + moved, time_split.remainder(idle_share, moved)
    return replace(
        thread,
        state=state,
        waiting_for=replace(wait, idle=idle),
        wait_share=wait_share,
        idle_share=idle_share,
        time=time,
    )
