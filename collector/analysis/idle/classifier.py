"""Waits told apart, for work or in contention, and what a thread does now."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec.structs import replace

from locktop.collector.analysis import time_split
from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.futex_types import FutexTypes
from locktop.collector.analysis.idle.rules import Rule, Rules
from locktop.collector.analysis.semaphore_uses import SemaphoreUses
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

# proc_pid_stat(5). R may mean "wants a CPU" too; telling the two apart costs another file a thread.
_BY_LETTER = {"R": ThreadState.RUNNING, "S": ThreadState.IDLE}

#: Whatever the rules say: who waits in a circle, or behind one, does not wait for work.
_DEADLOCKED = Rule(False, "deadlock", "waits in a circle, or for one")
#: Counters are read one after the other: what differs by less has a stack.
_CLEARLY = 0.01


def state(waits_for: Kind | None, letter: str) -> ThreadState:
    """Return the state by the kind alone; ``letter`` is "" where the kernel says nothing."""
    if waits_for is not None:
        return ThreadState.WAITING if waits_for in CONTENTION_KINDS else ThreadState.IDLE
    return _BY_LETTER.get(letter, ThreadState.OTHER)


def most_wait_first(lock: Lock) -> tuple[bool, float, int, int, int]:
    """The order of locks. Waiting for work is no contention, however long: those come last."""
    return lock.idle, -lock.counted_wait_s, -lock.contended, -lock.acquisitions, lock.id


class Classifier:
    """Applies rules to one look after the other."""

    def __init__(self, rules: Rules | None = None) -> None:
        """Without ``rules`` those that come with locktop."""
        self._rules = rules or Rules()
        self._types = FutexTypes(self._rules)
        self._candidates: dict[tuple[Kind, int], tuple[Sequence[Frame], tuple[Rule, ...]]] = {}
        self._locks: dict[int, tuple[Lock, Lock]] = {}  # as they came, as they left
        self._stacks: Mapping[int, tuple[Frame, ...]] = {}
        self._use = SemaphoreUses()
        self._as_locks: frozenset[int] = frozenset()

    def told(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with each wait told apart: see ``annotate``."""
        draft = snapshot.draft()
        self.annotate(draft)
        return draft.snapshot()

    def annotate(self, snapshot: Draft) -> None:
        """Decide for each wait whether it is idle, and what follows for threads and locks.

        An object that does not change stays the same object.
        """
        self._types.annotate(snapshot)
        self._stacks = snapshot.stacks
        in_circles = _got(snapshot)
        as_locks, before = self._use.told(snapshot) | in_circles, self._as_locks
        if as_locks != before:
            self._as_locks, self._locks = as_locks, {}
        self._candidates = {
            key: known
            for key, known in self._candidates.items()
            if snapshot.stacks.get(key[1]) is known[0]
        }
        threads, rules = self._threads(snapshot)
        as_locks = self._use.learn(snapshot, rules) | in_circles
        if as_locks != self._as_locks:
            self._as_locks, self._locks = as_locks, {}
            threads, rules = self._threads(snapshot)
        contended = {
            thread.waiting_for.lock
            for thread in threads
            if thread.waiting_for and not thread.waiting_for.idle
        }
        locks = [
            self._lock(lock, self._locks.get(lock.id), contended, snapshot.interval_s)
            for lock in snapshot.locks
        ]
        pairs = list(zip(snapshot.locks, locks, strict=True))
        self._locks = {pair[0].id: pair for pair in pairs}
        if any(lock.idle is not told.idle for lock, told in pairs):
            locks.sort(key=most_wait_first)
        stuck = dict.fromkeys(_stuck(snapshot), _DEADLOCKED)
        why = {tid: stuck.get(tid, rule).name for tid, rule in rules.items()}
        snapshot.threads, snapshot.locks, snapshot.why = tuple(threads), tuple(locks), why

    @property
    def asks_for_another_scan(self) -> bool:
        """Whether the next look may tell what waits of this one are."""
        return self._use.is_new

    def of_functions(self, frames: Sequence[Frame], thread: str) -> tuple[str, Rule | None]:
        """Return what is waited for in a futex call, by the functions of its stack ("" if they do
        not tell), and the rule that it fits; None where only its kind is left to go by."""
        candidates = self._rules.candidates(Kind.FUTEX, frames)
        rule = rules.choose(candidates, "", thread, held=False)
        return self._types.of(frames), rule if rule.functions or rule.thread else None

    # ---- threads ----

    def _threads(self, snapshot: Contents) -> tuple[list[Thread], dict[int, Rule]]:
        """Also returns, by tid, the rules that the waits fit; whoever is stuck is told apart by
        that."""
        stuck = _stuck(snapshot)
        names = {lock.id: lock.name for lock in snapshot.locks}
        threads, rules = [], {}
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None:
                rule = self._rule_of(thread, wait, names.get(wait.lock, ""), snapshot)
                rules[thread.tid] = rule
                idle = (_DEADLOCKED if thread.tid in stuck else rule).idle
                thread = _told(thread, wait, idle, snapshot.interval_s)
            threads.append(thread)
        return threads, rules

    def _rule_of(self, thread: Thread, wait: Wait, lock: str, snapshot: Contents) -> Rule:
        if not wait.stack and wait.site in snapshot.sites:
            candidates = self._rules.candidates(wait.kind, (snapshot.sites[wait.site],))
        else:
            candidates = self._fitting(wait.kind, wait.stack)
            if len(candidates) == 1:
                return candidates[0]
        return rules.choose(candidates, lock, thread.name, self._is_held(wait))

    def _is_held(self, wait: Wait) -> bool:
        return bool(wait.holders) or wait.lock in self._as_locks

    def _fitting(self, kind: Kind, stack: int) -> tuple[Rule, ...]:
        known = self._candidates.get((kind, stack))
        if known is None:
            frames = self._stacks.get(stack, ())
            known = self._candidates[kind, stack] = frames, self._rules.candidates(kind, frames)
        return known[1]

    # ---- locks ----

    def _lock(
        self,
        lock: Lock,
        known: tuple[Lock, Lock] | None,
        contended: Container[int],
        interval_s: float,
    ) -> Lock:
        """``known``: the lock as it came to the last look, and as it left."""
        if known is not None and known[0] is lock and not lock.waiters:
            return known[1]
        stacks = tuple([self._wait_stack(lock, entry) for entry in lock.wait_stacks])
        idle_s = self._idle_s(lock, stacks)
        waited = bool(stacks) or lock.wait_s > 0
        idle = (
            lock.id not in contended
            and (idle_s >= lock.wait_s if waited else self._without_stack(lock).idle)
            and all(entry.idle for entry in stacks)
        )
        as_lock = lock.id in self._as_locks
        told = lock
        if (idle, idle_s, as_lock, stacks) != (
            lock.idle, lock.idle_s, lock.used_as_lock, lock.wait_stacks,
        ):  # fmt: skip
            told = replace(lock, idle=idle, idle_s=idle_s, wait_stacks=stacks, used_as_lock=as_lock)
        if known is not None and 0 < idle_s < lock.wait_s:
            grown = (
                max(0.0, told.counted_wait_s - known[1].counted_wait_s) / interval_s
                if interval_s
                else 0.0
            )
            told = replace(told, rates=replace(told.rates, wait=grown))
        return told

    def _wait_stack(self, lock: Lock, entry: WaitStack) -> WaitStack:
        candidates = self._fitting(lock.kind, entry.stack)
        idle = rules.choose(candidates, lock.name, None, lock.id in self._as_locks).idle
        return entry if entry.idle is idle else replace(entry, idle=idle)

    def _idle_s(self, lock: Lock, stacks: Sequence[WaitStack]) -> float:
        """What of the lock's wait was for work: all or none of it exactly, where that is so."""
        kinds = {entry.idle for entry in stacks}
        rest = lock.wait_s - sum(entry.wait_s for entry in stacks)
        if not stacks or rest > lock.wait_s * _CLEARLY:
            kinds.add(self._without_stack(lock).idle)
        if len(kinds) == 1:
            return lock.wait_s if True in kinds else 0.0
        idle_s = sum(entry.wait_s for entry in stacks if entry.idle)
        return min(lock.wait_s, idle_s + (max(rest, 0.0) if self._without_stack(lock).idle else 0))

    def _without_stack(self, lock: Lock) -> Rule:
        candidates = self._fitting(lock.kind, 0)
        return rules.choose(candidates, lock.name, None, lock.id in self._as_locks)


def _got(snapshot: Contents) -> frozenset[int]:
    """The ids of semaphores that are locks because a circle that is certain goes over them."""
    certain = [found for found in snapshot.deadlocks if found.certain]
    edges = [edge for found in certain for edge in found.cycle]
    return frozenset(edge.waits_for for edge in edges if edge.how is BlockReason.GOT)


def _stuck(snapshot: Contents) -> set[int]:
    """Tids of those that wait in a circle, or for a certain one."""
    stuck = {edge.tid for found in snapshot.deadlocks for edge in found.cycle}
    stuck.update(tid for found in snapshot.deadlocks if found.certain for tid in found.stuck)
    return stuck


def _told(thread: Thread, wait: Wait, idle: bool, interval_s: float) -> Thread:
    """The thread in this wait. What the wait is of the last interval goes from one share to the
    other; waits that are over stay where their kind puts them."""
    now = ThreadState.IDLE if idle else ThreadState.WAITING
    if thread.state is not ThreadState.WAITING and thread.state is not ThreadState.IDLE:
        now = thread.state
    if wait.idle is idle:
        return thread if now is thread.state else replace(thread, state=now)
    moved = min(wait.duration_s / interval_s, 1.0) if interval_s and thread.alive else 0.0
    share = thread.wait_share if idle else thread.idle_share
    moved = min(moved, share)
    time = time_split.reclassified(thread.time, moved / share if share else 0.0, idle)
    moved = moved if idle else -moved
    return replace(
        thread,
        state=now,
        waiting_for=replace(wait, idle=idle),
        wait_share=thread.wait_share - moved,
        idle_share=thread.idle_share + moved,
        time=time,
    )
