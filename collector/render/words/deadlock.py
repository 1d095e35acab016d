"""The sentences about a deadlock: the text report, the screen and JSON say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from locktop.collector.analysis.thread_groups import common_name, family
from locktop.collector.model import (
    ActivityState,
    BlockReason,
    Deadlock,
    DeadlockEdge,
    DeadlockReport,
    Follower,
    Frame,
    Kind,
    LockingStep,
    LockName,
    Member,
    Remedy,
    Taken,
)
from locktop.collector.render.words import activity
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import counted, lasting

#: Tids of a group of threads.
_MAX_TIDS = 8
#: Of the threads behind a circle, or of those that wait for one lock.
MAX_NAMED = 3
_OTHERS, _NOBODY = "each other", "what no thread is left to give"
#: The advice if one source location takes all locks of the cycle.
_ONE_LOCATION = (
    "One source location takes all of these locks. Let every thread take them in one order, for"
    " example by address. That is"
)


_WHOSE = {
    BlockReason.HELD: "held by {}",
    BlockReason.PROBABLY_HELD: "probably held by {}",
    BlockReason.BEHIND: "behind {}, which waits to write and goes first",
    BlockReason.GOT: "taken by {}, which has not given it back",
    BlockReason.RUNS: "being run by {}",
    BlockReason.LIVES: "",
    BlockReason.ABSENT: "where {} has not arrived",
    BlockReason.SIGNALS: "which {} would have to post or signal",
    BlockReason.ABANDONED: "not given back by {}",
    BlockReason.AT_FORK: "got before the fork, and {} alone may post it",
}
#: The same in few words, before a name.
SHORTLY = {
    BlockReason.HELD: "held by",
    BlockReason.PROBABLY_HELD: "probably held by",
    BlockReason.BEHIND: "behind",
    BlockReason.GOT: "got by",
    BlockReason.RUNS: "run by",
    BlockReason.LIVES: "till the end of",
    BlockReason.ABSENT: "without",
    BlockReason.SIGNALS: "posted by",
    BlockReason.ABANDONED: "not given back by",
    BlockReason.AT_FORK: "got before the fork; posted by",
}


def who_for_whom(deadlocks: Sequence[Deadlock]) -> tuple[int, str]:
    """Return how many threads wait for good, and for whom. A thread that is a cycle of its own
    waits for itself. A thread in no cycle waits for something that no thread is left to give."""
    count = len({edge.tid for deadlock in deadlocks for edge in deadlock.cycle})
    selves = "itself" if count == 1 else "themselves"
    awaited = {_whom(deadlock.cycle, selves) for deadlock in deadlocks}
    return count, " or ".join(word for word in (_OTHERS, selves, _NOBODY) if word in awaited)


def _whom(cycle: Sequence[DeadlockEdge], selves: str) -> str:
    if cycle[-1].held_by != cycle[0].tid:
        return _NOBODY
    return selves if len(cycle) == 1 else _OTHERS


def headline(report: DeadlockReport) -> str:
    """Return what it is, of how many threads, since when."""
    what = "DEADLOCK" if report.certain else "POSSIBLE DEADLOCK"
    count = len(report.waiters or report.circle)
    verb = "waited" if report.ended else "waits" if count == 1 else "wait"
    whom = _OTHERS if count > 1 else "itself" if report.is_circle else _NOBODY
    if report.waiters:
        whom = f"{lock(report.circle[0].waits_for)}, whose units are all taken and not given back"
    lasts = lasting(report.since_s, report.is_lower_bound)
    duration_s = f"for {lasts}{'' if report.ended or report.is_lower_bound else ' already'}"
    since = f" (since {report.since})" if report.since else ""
    return (
        f"{what}: {counted(count, 'thread')} {verb} for {whom}, {duration_s}{since}{_more(report)}"
    )


def _more(report: DeadlockReport) -> str:
    count = sum(follower.tid not in report.waiters for follower in report.behind)
    if not count and not report.behind_in_part:
        return ""
    be = "was" if report.ended else "is"
    if count != 1:
        be = "were" if report.ended else "are"
    whom = "it" if len(report.waiters or report.circle) == 1 else "them"
    more = f"{counted(count, 'thread')} more"
    if report.behind_in_part:
        more = f"at least {more}" if count else "threads behind an earlier deadlock"
    return f"; {more} {be} stuck behind {whom}"


def circle(report: DeadlockReport, arrow: str = " -> ") -> str:
    """Return the threads in the order of their waits: ``alice -> bob -> alice``.

    Of threads that wait for a unit of one semaphore: ``3 threads -> sem g_slots``.
    """
    if report.waiters:
        waiters = counted(len(report.waiters), "thread")
        return f"{waiters}{arrow}{lock(report.circle[0].waits_for)}"
    names = [member.name or str(member.tid) for member in report.circle]
    if len(set(names)) < len(names):
        names = [f"{member.name}:{member.tid}".lstrip(":") for member in report.circle]
    last = names[0] if report.is_circle else _holder(report, report.circle[-1])
    return arrow.join([*names, last])


def _holder(report: DeadlockReport, member: Member) -> str:
    if not member.held_by:
        return "nobody"
    return thread(report, member.held_by) + _gone(member)


def _gone(member: Member) -> str:
    """Where it still lists the lock it has ended; else it may be in the parent of this process."""
    if member.reason is not BlockReason.ABANDONED:
        return ""
    return ", which has ended" if member.taken_at else ", which is gone"


def thread(report: DeadlockReport, tid: int) -> str:
    """Return a thread's name and id: ``alice (4711)``."""
    name = report.names.get(tid)
    return f"{name} ({tid})" if name else f"thread {tid}"


def lock(name: LockName) -> str:
    """Return a lock with its kind; a name made from the kind begins with it."""
    return name_with_kind(name.kind, name.name) if name.kind is not None else name.name


def waits_for(report: DeadlockReport, member: Member | Follower) -> str:
    """Return what a thread waits for: ``mutex g_lock``, ``the end of bob (4712)``."""
    if member.waits_for is None:
        return "a lock that one of them holds"
    if isinstance(member, Follower):
        is_join = member.waits_for.kind is Kind.JOIN
        return "the end of a thread" if is_join else lock(member.waits_for)
    if member.reason is BlockReason.LIVES and member.held_by:
        return f"the end of {'itself' if _self(member) else thread(report, member.held_by)}"
    return lock(member.waits_for) + reading(member)


def alike(report: DeadlockReport) -> tuple[tuple[Follower, ...], ...]:
    """Return the threads that are stuck behind. Threads of one pool that wait at one source
    location for one lock are together, the longest wait first."""
    groups: dict[object, list[Follower]] = {}
    for follower in report.behind:
        location = full_location(follower.at) if follower.at is not None else ""
        groups.setdefault((follower.waits_for, location, family(follower.name)), []).append(
            follower
        )
    return tuple(map(tuple, groups.values()))


def followers(report: DeadlockReport, group: Sequence[Follower]) -> tuple[str, str, str]:
    """Return the names of a group of followers, their request, and their wait time."""
    first, many = group[0], len(group) > 1
    lasts = lasting(first.duration_s, first.is_lower_bound)
    what = waits_for(report, first)
    if not many:
        return thread(report, first.tid), f"waits for {what}", f"for {lasts}"
    tids = ", ".join(str(follower.tid) for follower in group[:_MAX_TIDS])
    more = f" and {len(group) - _MAX_TIDS} more" if len(group) > _MAX_TIDS else ""
    name = common_name([follower.name for follower in group])
    who = f"{counted(len(group), 'thread')} ({name}: {tids}{more})"
    return who, f"wait for {what}", f"for {lasts if first.is_lower_bound else f'up to {lasts}'}"


def reading(member: Member) -> str:
    """Return whether it wants a reader-writer lock for reading or for writing."""
    if member.waits_for.kind is not Kind.RWLOCK:
        return ""
    return " (to read)" if member.shared else " (to write)"


def whose(report: DeadlockReport, member: Member) -> str:
    """Return the holder of the requested lock; "" where the text of the request has it."""
    if not member.held_by:
        if member.reason is BlockReason.AT_FORK:
            return "got before the fork, and no thread of this process is left to post it"
        return "and no thread is left that could end that wait"
    holder = "itself" if _self(member) else thread(report, member.held_by)
    return _WHOSE[member.reason].format(holder) + _gone(member)


def _self(member: Member) -> bool:
    return member.held_by == member.tid


def taken_at(member: Member) -> str:
    """Return where the holder took it, with the words before it, "" if that is not known."""
    if member.taken_at is None:
        return ""
    is_probable = member.reason is BlockReason.PROBABLY_HELD
    verb = "which goes on to release it" if is_probable else "taken"
    return f"{verb} in {full_location(member.taken_at)}"


def holder_activity(report: DeadlockReport, member: Member) -> str:
    """Return what the holder does now, "" where that is said already or not known."""
    if member.now is None or member.now.doing is ActivityState.ENDED or _self(member):
        return ""
    own = next((other for other in report.circle if other.tid == member.held_by), None)
    if member.now.doing is ActivityState.WAITING and own is not None:
        return f"now waiting for {waits_for(report, own)}"
    said = activity.doing(member.now, member.held_by)
    return f"now {said}" if said else ""


def has(
    report: DeadlockReport,
    taken: Taken,
    holder: Member,
    location: Callable[[Frame], str] = full_location,
) -> str:
    """Return a held lock, its hold time and source location, and the threads that want it."""
    parts = [f"holds {lock(taken.lock)}{' (to read)' * taken.shared}"]
    if taken.duration_s is not None:
        parts.append(f" for {lasting(taken.duration_s, taken.is_lower_bound)}")
    if taken.at is not None:
        parts.append(f", taken in {location(taken.at)}")
    wanted = [tid for tid in taken.wanted_by if tid != holder.tid]
    # Threads of the cycle come first: the lock matters because of them.
    wanted.sort(key=lambda tid: all(member.tid != tid for member in report.circle))
    if wanted:
        verb = "wants" if len(wanted) == 1 else "want"
        parts.append(f"; {threads(report, wanted)} {verb} it")
    return "".join(parts)


def threads(report: DeadlockReport, tids: Sequence[int]) -> str:
    """Return the first few of them by name, and how many more there are."""
    named = [thread(report, tid) for tid in tids[:MAX_NAMED]]
    if len(tids) > MAX_NAMED:
        named.append(f"{len(tids) - MAX_NAMED} more")
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def avoiding(report: DeadlockReport) -> Iterator[str]:
    """Yield what would have avoided it: the order of the locks, then what to change for it."""
    avoidance = report.avoidance
    if report.waiters:
        semaphore = lock(report.circle[0].waits_for)
        yield f"Post each unit of {semaphore} on every way out of the code that took it."
        return
    if avoidance.remedy is Remedy.GIVE_BACK:
        yield _given_back(report)
        return
    if avoidance.remedy is Remedy.NONE or (avoidance.change is None and not avoidance.order):
        yield "No order of locks would avoid it: these threads do not wait for locks alone."
        return
    order = ", then ".join(_lock_of(report, id_) for id_ in avoidance.order)
    if avoidance.remedy is Remedy.ONE_LOCATION:
        yield f"{_ONE_LOCATION}: {order}."
    elif avoidance.remedy is Remedy.ORDER:
        yield f"Take {order}."
    if avoidance.change is not None:
        yield _CHANGES[avoidance.remedy](report, avoidance.change)
    if avoidance.remedy is Remedy.ORDER:
        yield _reason(report)


def advice(report: DeadlockReport) -> str:
    """Return in a sentence or two what would avoid it; avoiding() says more."""
    avoidance, change = report.avoidance, report.avoidance.change
    if avoidance.remedy is Remedy.GIVE_BACK:
        return "Release each lock before its thread ends, and before the process forks."
    if report.waiters or change is None:
        return next(avoiding(report))
    order = ", then ".join(_lock_of(report, id_) for id_ in avoidance.order)
    name = _lock_of(report, change.has)
    if avoidance.remedy is Remedy.ONE_LOCATION:
        return f"Take these locks in one order, for example by address: {order}."
    if avoidance.remedy is Remedy.ORDER:
        other = thread(report, change.tid)
        wanted = _lock_of(report, change.wants)
        return f"Take {order} in every thread. {other} takes {name} before {wanted}."
    if avoidance.remedy is Remedy.ONCE_ONLY:
        return f"A function that is called with {name} held should not take {name} again."
    return f"Release {name} before the wait{_site(change.wants_at)}."


def _reorder_words(report: DeadlockReport, step: LockingStep) -> str:
    first, second = _lock_of(report, step.has), _lock_of(report, step.wants)
    kept = threads(report, report.avoidance.others)
    does = "does" if len(report.avoidance.others) == 1 else "do"
    return (
        f"{kept} {does}. {thread(report, step.tid)} takes {first} first{_site(step.has_at)} and"
        f" then wants {second}{_site(step.wants_at)}. This thread would have to take {second}"
        f" before {first}, or release {first} before it wants {second}."
    )


def _location_words(report: DeadlockReport, step: LockingStep) -> str:
    held, wanted = _site(step.has_at), _site(step.wants_at)
    return f"Each thread holds its first lock{held} and wants the second{wanted}."


def _retake_words(report: DeadlockReport, step: LockingStep) -> str:
    name = _lock_of(report, step.has)
    return (
        f"{thread(report, step.tid)} took {name}{_site(step.has_at)} and wants it"
        f" again{_site(step.wants_at)}. A function that is called with the lock held should not"
        " take it; or release the lock before that call."
    )


def _release_words(report: DeadlockReport, step: LockingStep) -> str:
    entry = report.locks.get(step.has)
    name = _lock_of(report, step.has)
    if entry is not None and entry.kind is Kind.ONCE:
        change = "A once routine should not wait for a thread that may call the routine"
    else:
        change = f"Release {name} before that wait"
    return (
        f"{thread(report, step.tid)} took {name}{_site(step.has_at)} and holds it while it"
        f" waits{_site(step.wants_at)}. {change}."
    )


def _given_back(report: DeadlockReport) -> str:
    member = report.circle[0]
    if member.reason is BlockReason.AT_FORK:
        return (
            f"A thread of the parent process had {lock(member.waits_for)} at the fork. No thread"
            " should hold a lock when a process forks (pthread_atfork)."
        )
    if not member.taken_at:
        return (
            f"{thread(report, member.held_by)} held {lock(member.waits_for)} and is gone. A thread"
            " should release its locks before it ends. No other thread should hold a lock when a"
            " process forks (pthread_atfork)."
        )
    return (
        f"{thread(report, member.held_by)} took {lock(member.waits_for)}{_site(member.taken_at)}"
        " and ended. A thread should release its locks before it ends, also if it is cancelled."
        + " A robust mutex goes to the next waiter, which gets EOWNERDEAD."
        * (member.waits_for.kind is Kind.MUTEX)
    )


_CHANGES = {
    Remedy.ORDER: _reorder_words,
    Remedy.ONE_LOCATION: _location_words,
    Remedy.ONCE_ONLY: _retake_words,
    Remedy.RELEASE: _release_words,
}


def _reason(report: DeadlockReport) -> str:
    """Why this one: an order is a rule of the program, which we do not know."""
    count = report.avoidance.elsewhere
    if count:
        verb = "takes" if count == 1 else "take"
        return (
            f"{counted(count, 'thread')} outside the cycle {verb} these two in that order as well."
        )
    return (
        "The intended order is not known. This thread's wait closed the cycle. The order of another"
        " thread of the cycle could be reversed instead."
        if _closed_it(report)
        else "The intended order is not known. The order of another thread of the cycle could be"
        " reversed instead."
    )


def _closed_it(report: DeadlockReport) -> bool:
    change = report.avoidance.change
    if change is None or report.is_lower_bound:
        return False  # no scan showed which thread came last
    return change.duration_s <= min(member.duration_s for member in report.circle)


def _lock_of(report: DeadlockReport, id_: int) -> str:
    entry = report.locks.get(id_)
    return lock(entry) if entry is not None else f"lock {id_}"


def _site(frame: Frame | None) -> str:
    return f" (in {full_location(frame)})" if frame is not None else ""


def to_do(report: DeadlockReport) -> Iterator[str]:
    """Yield what can be done about it now."""
    pid = report.process.pid
    yield _first_step(report)
    if report.ended:
        return
    if not (report.certain or report.process_hangs):
        yield (
            "The deadlock is not certain, see above. Check again before you end anything because"
            f" of it: `locktop check -p {pid}`."
        )
        return
    behind = ", nor the threads stuck behind" if report.behind else ""
    yield f"No thread of this deadlock goes on by itself{behind}."
    yield "The only way out is to end the process."
    yield f"Save a snapshot before that: `locktop snapshot -p {pid} -o FILE`."


def _first_step(report: DeadlockReport) -> str:
    change = report.avoidance.change
    if report.waiters:
        return "Look first at the code that took the units."
    if change is None:
        return f"Look first at {thread(report, report.circle[0].tid)}."
    if report.avoidance.remedy is Remedy.ONE_LOCATION:
        return f"Look first at {thread(report, change.tid)}; the others are at the same location."
    return f"Look first at {thread(report, change.tid)}. Its code would have to change."
