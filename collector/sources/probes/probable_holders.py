"""The threads that probably hold locks which name no holder, by what their code does next.

A Rust Mutex or an absl::Mutex does not name its holder. But the machine code of the holder goes on
to release the lock, and the code of every other thread has to take it first (next_use.py). So each
frame of each thread that does not wait for the lock is followed, from the innermost on. The first
frame that does something with the lock decides. Of a thread that runs, the kernel copies the stack.

Nothing of this is certain: the code may go another way than it seems.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.linux import futex, process_memory, saved_process
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Draft, HolderEvidence, Kind, Lock, ProbableHolder, Thread
from locktop.collector.model.kinds import HOLDER_SOUGHT_KINDS
from locktop.collector.sources.probes import lock_words
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.unwind import perf_sample
from locktop.collector.symbols.unwind.first_use import SoughtLock
from locktop.collector.symbols.unwind.perf_sample import RefusedError

if TYPE_CHECKING:
    from locktop.collector.linux.syscalls import SystemCall
    from locktop.collector.symbols.unwind.cursor import Unwound
    from locktop.collector.symbols.unwind.unwinder import Unwinder

#: A shorter wait is likely to end before its holder is known.
_MIN_WAIT_S = 0.1
_MAX_LOCK_SIZE = 64  # bytes from the address of a lock to a word that threads wait at
_MAX_LOCKS = 16  # of one scan, those with the longest waits
_MAX_RUNNING = perf_sample.MAX_SAMPLED
_RUNNING_S = 0.01  # for a running thread to be on a CPU once more
_MAX_HOLDERS = 8  # of one lock, but for a lock that counts more readers
_PAGE = 4096
_OBJECT_SIZE = 256  # bytes of an object before a lock in it
_STACK_SIZE = 8 * _PAGE  # bytes of the stack that are searched for the lock
_MAX_NEW = 128  # stacks that are read at once
#: CPU seconds to follow threads: of a scan for the screen, and of one that waits for all names.
_SCAN_S, _FULL_SCAN_S = 0.01, 1.0
_MAX_SHARE = 0.02  # of a CPU, for scans of the screen
#: CPU seconds of the first searches, without a pause after them: a deadlock of two Rust locks takes
#: 0.07 s, most of it to decode code. With pauses that would be 4 s until the screen names it.
UNPAUSED_S = 0.1


class _HoldQuestion(NamedTuple):
    """Whether one sleep of a thread is within a hold of a lock."""

    tid: int
    counts: tuple[int, int, int]  # of ThreadMoment: each sleep has others
    words: SoughtLock


class _Answer(NamedTuple):
    holds: bool
    site: int  # the return address in the frame that goes on to release the lock


class _Likeness(NamedTuple):
    """The signs by which threads of a pool are alike: if one does not hold the lock, few do."""

    addresses: tuple[int, ...]  # the stack; () if it is not known
    #: The addresses on the stack that lead to the lock, each with its place.
    references: tuple[tuple[int, int], ...]


class _Candidate(NamedTuple):
    """A thread that may hold a lock."""

    question: _HoldQuestion
    moment: ThreadMoment
    likeness: _Likeness


class _LockSleep(NamedTuple):
    """One sleep of a thread that waits for a lock."""

    tid: int
    counts: tuple[int, int, int]  # of ThreadMoment: each sleep has others
    lock: int  # id
    type: str  # of the lock: its words go by it, and it is known later than the wait
    stack: int  # id; functions on it tell where the words are


class _Kept(Struct):
    """The answers about threads that sleep on, kept from one scan to the next."""

    words: dict[_LockSleep, SoughtLock] = field(default_factory=dict)
    likenesses: dict[_HoldQuestion, _Likeness] = field(default_factory=dict)
    answers: dict[_HoldQuestion, _Answer] = field(default_factory=dict)


class _WantedLock(NamedTuple):
    """A lock that threads wait for, and that names no holder."""

    lock: Lock
    seems_idle: bool  # it may be no lock: its holder must have taken it


class _Target(Struct):
    """A wanted lock whose words are known."""

    lock: Lock
    words: SoughtLock
    waiters: frozenset[int]


class _HolderSearch:
    """One search of a scan, in the threads as they are now.

    Args:
        pid: the process.
        tasks: the threads of the process.
        draft: the scan.
        unwinder: follows stacks and code.
        before: the answers of the search before.
        follows_all: also threads without a sign of a lock that may be none.
    """

    def __init__(
        self,
        pid: int,
        tasks: KernelThreads,
        draft: Draft,
        unwinder: Unwinder,
        before: _Kept,
        follows_all: bool,
    ) -> None:
        self._pid = pid
        self._tasks = tasks
        self._draft = draft
        self._unwinder = unwinder
        self._before = before
        self._until = 0.0  # when the search ends, time.thread_time()
        self._follows_all = follows_all
        self.kept = _Kept()
        threads = {thread.tid: thread for thread in draft.threads if _is_own(thread)}
        addresses = {lock.id: lock.address for lock in draft.locks}
        self.moments = {
            tid: moment
            for tid, moment in tasks.moments(threads).items()
            if self._is_as_scanned(threads[tid], moment, addresses)
        }

    def probable_holders(
        self, wanted: Mapping[int, _WantedLock], budget_s: float
    ) -> dict[int, tuple[ProbableHolder, ...]]:
        """Return the probable holders of these locks, both by the id of the lock.

        ``budget_s``: CPU seconds to follow threads.
        """
        targets = list(self._targets(wanted))
        self._until = time.thread_time() + budget_s
        probable: dict[int, tuple[ProbableHolder, ...]] = {}
        for target in targets:
            holders = self._sleeping_holders(target)
            if holders is not None and not holders:
                holders = self._running_holders(target)
            if holders and len(holders) <= max(_MAX_HOLDERS, target.lock.readers):
                probable[target.lock.id] = tuple(
                    ProbableHolder(tid=tid, evidence=HolderEvidence.GUARD, site=site)
                    for tid, site in sorted(holders.items())
                )
        return probable

    def _others(self, target: _Target) -> dict[int, ThreadMoment]:
        """Return the threads that do not wait for a lock, by tid."""
        return {tid: each for tid, each in self.moments.items() if tid not in target.waiters}

    def _is_as_scanned(
        self, thread: Thread, moment: ThreadMoment, addresses: Mapping[int, int]
    ) -> bool:
        """Return whether a thread that waits in the scan still does: else it may have the lock."""
        wait = thread.waiting_for
        if wait is None:
            return True
        if moment.call is None or not _sleeps(moment):
            return False
        call = futex.parse_wait(self._pid, moment.call)
        if wait.kind not in HOLDER_SOUGHT_KINDS:
            return True
        address = addresses.get(wait.lock)
        return (
            call is not None
            and address is not None
            and 0 <= call.address - address < _MAX_LOCK_SIZE
        )

    def _sleeping_holders(self, target: _Target) -> dict[int, int] | None:
        """Return the sites of sleeping threads that go on to release a lock, by tid.

        Returns:
            None if no time was left for a thread with the lock on its stack.
        """
        candidates = self._candidates(target)
        if candidates is None:
            return None
        holders: dict[int, int] = {}
        others_alike: set[_Likeness] = set()  # of threads that do not hold the lock
        alike = []
        for candidate in candidates:
            answer = self._kept_answer(candidate.question)
            if answer is None and candidate.likeness in others_alike:
                alike.append(candidate)
                continue
            if answer is None and self._is_over():
                if candidate.likeness.references:
                    return None
                continue
            answer = answer or self._answer(candidate)
            if answer is not None and answer.holds:
                holders[candidate.question.tid] = answer.site
            elif answer is not None and candidate.likeness.addresses:
                others_alike.add(candidate.likeness)
        if holders:
            return holders
        # Threads of a pool are seldom unlike in registers alone: half of the time is for them.
        until = (time.thread_time() + self._until) / 2
        for candidate in alike:
            if time.thread_time() > until:
                break
            answer = self._answer(candidate)
            if answer is not None and answer.holds:
                holders[candidate.question.tid] = answer.site
        return holders

    def _is_over(self) -> bool:
        return time.thread_time() > self._until

    def _kept_answer(self, question: _HoldQuestion) -> _Answer | None:
        """Return the answer of this scan or the one before, and keep it."""
        answer = self.kept.answers.get(question) or self._before.answers.get(question)
        if answer is not None:
            self.kept.answers[question] = answer
        return answer

    def _answer(self, candidate: _Candidate) -> _Answer | None:
        """Follow the frames of a thread, and keep the answer; None if it has run meanwhile."""
        question, moment, _ = candidate
        assert moment.call is not None
        first = self._unwinder.first_use(question.tid, moment.call, question.words)
        again = self._tasks.moments([question.tid]).get(question.tid)
        has_slept = again is not None and (again.counts, again.call) == (moment.counts, moment.call)
        if first is None or not has_slept:
            return None
        site, holds = first
        answer = self.kept.answers[question] = _Answer(holds, site if holds else 0)
        return answer

    def _running_holders(self, target: _Target) -> dict[int, int]:
        """Return the same of threads that run, as far as the kernel samples them."""
        running = {
            self._tasks.kernel_tid(tid): tid
            for tid, moment in self._others(target).items()
            if moment.state == "R"
        }
        chosen = dict(islice(running.items(), _MAX_RUNNING))
        try:
            uses = self._unwinder.running_first_uses(chosen, target.words, _RUNNING_S)
        except RefusedError:
            return {}
        return {tid: site for tid, (site, holds) in uses.items() if holds}

    def _targets(self, wanted: Mapping[int, _WantedLock]) -> Iterator[_Target]:
        """Yield the locks whose words are known; their waiters sleep in a futex call."""
        by_words: dict[SoughtLock, list[tuple[Lock, set[int]]]] = {}
        for thread in self._draft.threads:
            wait, moment = thread.waiting_for, self.moments.get(thread.tid)
            lock, seems_idle = wanted.get(wait.lock, (None, False)) if wait else (None, False)
            if wait is None or lock is None or moment is None or not _sleeps(moment):
                continue
            assert moment.call is not None
            call = futex.parse_wait(self._pid, moment.call)
            if call is None or not 0 <= call.address - lock.address < _MAX_LOCK_SIZE:
                continue
            sleep = _LockSleep(thread.tid, moment.counts, lock.id, lock.type, wait.stack)
            words = self._before.words.get(sleep)
            if words is None:
                words = self._words(lock, wait.stack, moment.call)
            self.kept.words[sleep] = words
            if seems_idle:
                words = replace(words, needs_proof=True)
            if words.addresses:
                by_words.setdefault(words, []).append((lock, {thread.tid}))
        for words, locks in by_words.items():
            waiters = frozenset(tid for _, tids in locks for tid in tids)
            for lock in {lock.id: lock for lock, _ in locks}.values():
                yield _Target(lock, words, waiters)

    def _words(self, lock: Lock, stack: int, call: SystemCall) -> SoughtLock:
        """Return the words of a lock by a thread that waits for it, with this stack and call."""
        frames = self._draft.stacks.get(stack, ())
        if lock.kind is Kind.COND:
            return lock_words.shared_mutex_words(lock.address, frames, self._read)
        page = process_memory.read(self._pid, call.sp, _PAGE)
        return lock_words.words_of(lock.type, lock.address, frames, page, self._read)

    def _candidates(self, target: _Target) -> list[_Candidate] | None:
        """Return the sleeping threads, those with the lock on their stack first.

        Returns:
            None if no time was left for all of them.
        """
        asleep = {
            _HoldQuestion(tid, moment.counts, target.words): moment
            for tid, moment in self._others(target).items()
            if _sleeps(moment) and not self._waits_at(moment, target)
        }
        likenesses = self._before.likenesses
        calls = [moment.call for question, moment in asleep.items()
                 if moment.call is not None and question not in likenesses]  # fmt: skip
        unwound = self._unwinder.cached_stacks(calls[:_MAX_NEW])
        candidates, is_complete = [], True
        for question, moment in asleep.items():
            likeness = likenesses.get(question)
            if likeness is None and self._is_over():
                is_complete = False
                continue
            if likeness is None:
                assert moment.call is not None
                stack = unwound.get(moment.call) or self._unwinder.sleeping_stack(
                    moment.call, lambda: True
                )
                likeness = self._likeness(moment.call, stack, target)
            self.kept.likenesses[question] = likeness
            if likeness.references or self._follows_all or not target.words.needs_proof:
                candidates.append(_Candidate(question, moment, likeness))
        candidates.sort(key=lambda candidate: not candidate.likeness.references)
        return candidates if is_complete else None

    def _waits_at(self, moment: ThreadMoment, target: _Target) -> bool:
        """Return whether a thread waits for the lock by now, but did not yet in the scan."""
        call = futex.parse_wait(self._pid, moment.call) if moment.call is not None else None
        return call is not None and call.address in target.words.addresses

    def _likeness(self, call: SystemCall, stack: Unwound | None, target: _Target) -> _Likeness:
        size = stack.heights[-1] if stack is not None and stack.complete else _STACK_SIZE
        data = self._read(call.sp, min(size, _STACK_SIZE))  # up to the end of a shorter one
        return _Likeness(
            addresses=stack.addresses if stack is not None else (),
            references=_references(data, target.words.addresses),
        )

    def _read(self, address: int, size: int) -> bytes:
        return process_memory.read(self._pid, address, size)


class ProbableHolders:
    """Finds these threads in one process, scan after scan. Each sleep is followed once."""

    def __init__(self, pid: int, tasks: KernelThreads, stacks: NativeStacks) -> None:
        self._pid = pid
        self._tasks = tasks
        self._stacks = stacks
        self._kept = _Kept()
        self._probable: Mapping[int, tuple[ProbableHolder, ...]] = {}  # of the last search, by lock
        self._counts: dict[int, tuple[int, int, int]] = {}  # of these threads, by tid
        self._unpaused_s = UNPAUSED_S  # left
        self._again_at = 0.0  # time.monotonic(); no scan for the screen searches before

    def annotate(self, draft: Draft, is_full: bool) -> bool:
        """Fill in the probable holders of locks with long waits and without a known holder.

        Args:
            draft: the scan, with names and with idle waits known.
            is_full: the scan waits for all names, and may take longer.

        Returns:
            Whether a wait that seemed idle is for a lock.
        """
        wanted = _wanted_locks(draft, 0.0 if saved_process.get(self._pid) else _MIN_WAIT_S)
        unwinder = self._stacks.unwinder() if wanted else None
        if unwinder is None:
            self._kept = _Kept()
            return False
        began = time.thread_time()
        try:
            probable = self._lasting(wanted, draft)
            if is_full or time.monotonic() >= self._again_at:
                budget_s = _FULL_SCAN_S if is_full else _SCAN_S
                search = _HolderSearch(self._pid, self._tasks, draft, unwinder, self._kept, is_full)
                probable |= search.probable_holders(wanted, budget_s)
                self._kept = search.kept
                self._counts |= {tid: moment.counts for tid, moment in search.moments.items()}
                tids = {holder.tid for holders in probable.values() for holder in holders}
                self._counts = {tid: self._counts[tid] for tid in tids}
        except OSError:
            return False  # the process has ended, or may not be read
        self._probable = probable
        self._pause(time.thread_time() - began)
        if probable:
            draft.locks = tuple([
                replace(lock, holders_probable=probable[lock.id]) if lock.id in probable else lock
                for lock in draft.locks
            ])  # fmt: skip
        return any(wanted[lock].seems_idle for lock in probable)

    def _pause(self, used_s: float) -> None:
        """Put off the next search of the screen after one of ``used_s`` CPU seconds."""
        unpaused_s = min(used_s, self._unpaused_s)
        self._unpaused_s -= unpaused_s
        pause_s = (used_s - unpaused_s) / _MAX_SHARE
        self._again_at = max(self._again_at, time.monotonic() + pause_s)

    def _lasting(
        self, wanted: Mapping[int, _WantedLock], draft: Draft
    ) -> dict[int, tuple[ProbableHolder, ...]]:
        """Return the probable holders of the last search that sleep on, but for its waiters."""
        probable = {id_: holders for id_, holders in self._probable.items() if id_ in wanted}
        tids = {holder.tid for holders in probable.values() for holder in holders}
        moments = self._tasks.moments(tids) if tids else {}
        asleep = {tid for tid in moments if moments[tid].counts == self._counts.get(tid)}
        waits = {(each.waiting_for.lock, each.tid) for each in draft.threads if each.waiting_for}
        lasting = {
            id_: tuple([
                holder for holder in holders
                if holder.tid in asleep and (id_, holder.tid) not in waits
            ])
            for id_, holders in probable.items()
        }  # fmt: skip
        return {id_: holders for id_, holders in lasting.items() if holders}


def _references(stack: bytes, words: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Return where a stack has the address of a lock, or of an object in which it may lie."""
    values = memoryview(stack)[: len(stack) // 8 * 8].cast("Q")
    return tuple(
        (index, value)
        for index, value in enumerate(values)
        if any(word - _OBJECT_SIZE < value <= word for word in words)
    )


def _wanted_locks(draft: Draft, min_wait_s: float) -> dict[int, _WantedLock]:
    """Return by id the locks that threads wait for, and that name no holder.

    ``min_wait_s``: of the longest wait; a core has no times.
    """
    locks = {lock.id: lock for lock in draft.locks}
    longest: dict[int, tuple[bool, float]] = {}  # whether the wait seems no idle one, and how long
    for thread in draft.threads:
        wait = thread.waiting_for
        if wait is None or wait.holders or wait.kind not in HOLDER_SOUGHT_KINDS:
            continue
        lock = locks.get(wait.lock)
        if lock is None or lock.holders or lock.holders_probable:
            continue
        if wait.idle and (lock.kind is Kind.COND or not lock_words.may_be_lock(lock.type)):
            continue
        if wait.duration_s >= min_wait_s and _is_own(thread):
            seen = not wait.idle, wait.duration_s
            longest[lock.id] = max(seen, longest.get(lock.id, (False, 0.0)))
    chosen = sorted(longest, key=lambda id_: longest[id_], reverse=True)[:_MAX_LOCKS]
    return {id_: _WantedLock(locks[id_], not longest[id_][0]) for id_ in chosen}


def _is_own(thread: Thread) -> bool:
    return thread.alive and not thread.pid


def _sleeps(moment: ThreadMoment) -> bool:
    return moment.state == "S" and moment.call is not None and moment.call.number >= 0
