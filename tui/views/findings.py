"""The first lines of the details: what is wrong with a lock or a thread, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from locktop.collector.model import (
    GIL,
    ActivityState,
    DeadlockReport,
    Kind,
    Lock,
    Pattern,
    PatternName,
    Thread,
    Wait,
)
from locktop.collector.render.words import (
    activity,
    brief_holds,
    deadlock,
    earlier_holder,
    elsewhere,
    hang,
    readers,
    renewed_waits,
)
from locktop.collector.render.words.misuse import misuse_sentence
from locktop.collector.render.words.named_holder import Certainty, NamedHolder
from locktop.collector.render.words.patterns import ADVICE, GIL_ADVICE
from locktop.collector.render.words.snapshot_index import LONG_WAIT_S, SnapshotIndex
from locktop.collector.render.words.verdict import long_hang
from locktop.tui.views.cells import counted, duration, held_text, lasting
from locktop.tui.views.detail_parts import labelled, program_location, stack_of
from locktop.tui.views.styled_line import Fold, Line, Span, make_line

#: The lock does not tell whether one reader keeps it.
_OF_READERS = (
    "Let the lock prefer writers if its readers overlap; do less in a reader that keeps it:"
    " a shows what each thread does."
)
#: Seconds. A shorter hold or wait of a holder is over before anybody reads of it.
_MIN_S = 0.1
#: Seconds of waits a second: fewer short waits are no finding.
_MIN_RATE = 0.1
#: Groups of threads of a hang: the advice stays in sight.
_MAX_GROUPS = 3


def lock_findings(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The findings about a lock, each with its advice; none of a lock without a finding."""
    stuck = stuck_findings(index, {lock.id}, lock.waiters)
    patterns = list(pattern_findings(index, (lock.id,)))
    yield from (*stuck, *patterns)
    if not stuck and not patterns:
        yield from wait_findings(index, lock, index.waiters_of(lock.id))
    yield from _holder_elsewhere(index, lock)
    yield from _misuses(index, lock)


def thread_findings(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The findings about a thread: what it waits for, or what others wait for because of it."""
    tid, wait = thread.tid, thread.waiting_for
    stuck = list(
        _deadlocks(
            index,
            lambda report: any(
                tid in (other.tid for other in group) for group in (report.circle, report.behind)
            ),
        )
    )
    yield from stuck or _hang(index, frozenset({tid}))
    locks = [held.lock for held in thread.holds] + ([wait.lock] if wait is not None else [])
    patterns = [
        pattern
        for pattern in index.snapshot.patterns
        if tid in pattern.tids or pattern.lock in locks
    ]
    for pattern in patterns:
        name = f" at {index.lock_name(pattern.lock)}" if pattern.lock else ""
        yield from _pattern(pattern, name)
    if stuck or patterns:
        return
    for id_ in locks:
        if id_ in index.locks:
            whose = f" for {index.lock_name(id_)}"
            yield from wait_findings(index, index.locks[id_], index.waiters_of(id_), whose)


def stuck_findings(
    index: SnapshotIndex, locks: AbstractSet[int], waiters: Iterable[int]
) -> list[Line]:
    """The deadlocks of these locks; else the hang of the whole process, if a waiter is in it."""
    deadlocks = _deadlocks(index, lambda report: not locks.isdisjoint(report.locks))
    return list(deadlocks) or list(_hang(index, frozenset(waiters)))


def pattern_findings(index: SnapshotIndex, locks: Container[int]) -> Iterator[Line]:
    """Each contention pattern of these locks, with its evidence and advice."""
    for pattern in index.snapshot.patterns:
        if pattern.lock and pattern.lock in locks:
            yield from _pattern(pattern)


def advice_line(text: str) -> Line:
    """The line that says what to do."""
    return labelled("advice", text)


def _pattern(pattern: Pattern, whose: str = "") -> Iterator[Line]:
    yield make_line((f" {pattern.name.heading}{whose}: ", "waiting"), pattern.evidence)
    yield advice_line(pattern.advice)


def _deadlocks(index: SnapshotIndex, is_about: Callable[[DeadlockReport], bool]) -> Iterator[Line]:
    for report in index.deadlock_reports:
        if is_about(report):
            what, _, rest = deadlock.headline(report).partition(":")
            yield make_line(
                (f" {what.capitalize()}", "stuck"), f":{rest}", ("  d", "key"), " shows it"
            )
            yield advice_line(deadlock.advice(report))


def _hang(index: SnapshotIndex, tids: frozenset[int]) -> Iterator[Line]:
    """The hang of the whole process, if one of these threads is in it."""
    hung = long_hang(index.snapshot)
    if hung is None or tids.isdisjoint(hung.tids):
        return
    unless = f", unless {hung.doubt}" if hung.doubt else ""
    title = "Hang" if hung.certain else "Possible hang"
    yield make_line((f" {title}: ", "stuck"), f"{hang.whom(index.snapshot)}{unless}")
    groups = hang.groups(index.snapshot)
    about = [group for group in groups if any(thread.tid in tids for thread in group.threads)]
    for group in about[:_MAX_GROUPS]:
        yield make_line("   ", (hang.part(group), "strong"))
    if len(about) > _MAX_GROUPS:
        more = counted(len(about) - _MAX_GROUPS, "more group")
        yield make_line((f"   and {more} of threads", "dim"))
    if hung.certain:
        yield advice_line(hang.REMEDY)


def wait_findings(
    index: SnapshotIndex, lock: Lock, waiters: Sequence[Thread], whose: str = ""
) -> Iterator[Line]:
    """The finding about the present waits: the holder waits itself, or works on for long.

    Args:
        index: the snapshot.
        lock: a lock without a pattern.
        waiters: the threads that wait in contention for the lock or its class, the longest first.
        whose: " for g_lock" where the lock is not the subject.
    """
    named = index.holder_of(lock) if waiters else None
    holder = index.threads.get(named.tids[0]) if named is not None else None
    if named is not None and holder is not None and holder.waiting_for is not None:
        yield from _blocked_holder(index, lock, named, holder.waiting_for)
        return
    if named is not None and named.certainty is Certainty.EXACT:
        held = index.held(named.tids[0], lock.id)
        if _runs(named) and held is not None and (held.duration_s or 0.0) >= _MIN_S:
            yield make_line(
                (" Long hold: ", "waiting"),
                f"{index.thread_name(named.tids[0])} has held {index.lock_name(lock.id)} for"
                f" {held_text(held)} and is {activity.doing(named.now, named.tids[0])};"
                f" {counted(len(waiters), 'thread')} waiting",
            )
            less = "Do less while it is held: I shows what runs inside."
            yield advice_line(GIL_ADVICE if lock.name == GIL else less)
            return
    longest = waiters[0].waiting_for if waiters else None
    if longest is None:
        return
    is_exact = named is not None and named.certainty is Certainty.EXACT
    rate = 0.0 if is_exact else _waited_a_second(index, waiters)
    before = renewed_waits.earlier_waits_s(index, waiters)
    title = "Long wait" if max(longest.duration_s, before) >= LONG_WAIT_S else "Contended"
    if title == "Contended" and rate < _MIN_RATE:
        return
    yield make_line(
        (f" {title}{whose}: ", "waiting"),
        _who_waits(longest, len(waiters), rate, before),
        *_behind_whom(index, lock),
    )
    is_lock = lock.kind is not Kind.COND
    if title == "Contended" and named is None and is_lock and not readers.phrase(lock):
        yield advice_line("Take it less often, do less while it is held, or split its data.")
    else:
        yield advice_line(_advice(index, lock, named))


def _who_waits(longest: Wait, count: int, rate: float, before_s: float) -> str:
    """How many threads wait, since when, and how much a second.

    A wait has no length yet where one scan alone has met it. ``before_s``: seconds of earlier waits
    with a time limit.
    """
    since = lasting(longest.duration_s, longest.is_lower_bound) if longest.duration_s else ""
    who, length = "1 thread waits", f" {since}" if since else ""
    if count > 1:
        who, length = f"{count} threads wait", f", the longest {since}" if since else ""
    often = f",{' together' * (count > 1)} {duration(rate)} a second" if rate >= _MIN_RATE else ""
    after = f", after {duration(before_s)} of such waits" if before_s else ""
    return f"{who}{length}{after}{often}; "


def _waited_a_second(index: SnapshotIndex, waiters: Sequence[Thread]) -> float:
    """The seconds of waits a second for the locks of these waiters."""
    waits = (thread.waiting_for for thread in waiters)
    locks = {wait.lock for wait in waits if wait is not None}
    return sum(index.locks[id_].rates.wait or 0.0 for id_ in locks if id_ in index.locks)


def _blocked_holder(
    index: SnapshotIndex, lock: Lock, named: NamedHolder, wait: Wait
) -> Iterator[Line]:
    """The finding that the holder waits itself."""
    if wait.duration_s < _MIN_S or wait.idle:
        return
    other = index.lock_name(wait.lock)
    yield make_line(
        (f" Behind {other}: ", "waiting"),
        f"{index.thread_name(named.tids[0])}, which {named.adverb}has"
        f" {index.lock_name(lock.id)}, has waited"
        f" {lasting(wait.duration_s, wait.is_lower_bound)} for it",
    )
    yield advice_line(f"Look at {other} first: its holder keeps all of these.")


def _behind_whom(index: SnapshotIndex, lock: Lock) -> Iterator[Span | str]:
    """The holder of a lock, what it does, and where."""
    named, by_readers = index.holder_of(lock), readers.phrase(lock)
    if named is None:
        earlier = earlier_holder.phrase(index, lock)
        unknown = earlier or brief_holds.phrase(index, lock) or "its holder is not known"
        yield f"behind {by_readers}" if by_readers else unknown
        return
    yield f"behind {by_readers}, {named.adverb}" if by_readers else f"{named.adverb}behind "
    yield index.holders(named.tids, lock.id), "holder"
    now = named.now
    if now is None or now.tid != named.tids[0]:
        return
    if now.doing is ActivityState.BLOCKED and now.call:
        yield f", in {now.call}"
    elif does := activity.doing(now, now.tid):
        yield f", {does}"
    if now.stack and not now.stack_age_s and (top := program_location(index, now.stack)):
        yield " at "
        yield top, "where"


def _advice(index: SnapshotIndex, lock: Lock, named: NamedHolder | None) -> str:
    """The advice about a long wait."""
    does = "signals it" if lock.kind is Kind.COND else "has it"
    if lock.name == GIL and named is not None:
        return GIL_ADVICE
    if readers.phrase(lock):
        return _OF_READERS
    if named is not None and named.certainty is Certainty.LIKELY:
        name = index.holders(named.tids, lock.id)
        until = "signals it" if lock.kind is Kind.COND else "releases it"
        return f"Look at {name} first (Enter): see what it does before it {until}."
    if named is not None and _runs(named):
        return "Do less while it is held, or split its data."
    if named is not None and named.now is not None and named.now.call:
        return ADVICE[PatternName.LONG_HOLD]
    return f"Find the thread that {does}: a shows what each thread does."


def _runs(named: NamedHolder) -> bool:
    now = named.now
    return now is not None and now.tid == named.tids[0] and now.doing is ActivityState.RUNNING


def _holder_elsewhere(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The holder in another process, if it is known what to do about it."""
    for tid in lock.holders:
        other = index.threads_elsewhere.get(tid)
        if other is not None and (advice := elsewhere.advice(other, lock)):
            yield make_line((" Another process has it: ", "waiting"), elsewhere.full_name(other))
            yield advice_line(advice)


def _misuses(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """Each misuse of the lock; its stack is inside."""
    for misuse in index.snapshot.misuses:
        if misuse.lock == lock.id:
            sentence = misuse_sentence(misuse, index.thread_name, index.lock_name)
            after = (("Against the rules: ", "waiting"), (sentence, "text"))
            yield Fold((), after, stack_of(index, misuse.stack, 0))
