"""The headline: the lock that threads wait for, since when, its holder, and where."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from locktop.collector.model import Kind, Lock, PatternName, Thread
from locktop.collector.render.words import amid_work
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import shortest_location
from locktop.tui.views.cells import duration, lasting
from locktop.tui.views.lock_list import holder_activity_span
from locktop.tui.views.past_alerts import NO_ALERTS, PastAlerts, how_many, quiet_text
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line

#: Fewer seconds waited per second are not worth a headline.
_CALM_WAIT = 0.001
#: Fewer seconds of waits in the last minute are not worth a headline.
_MIN_LATELY_S = 0.1
#: The patterns in which threads hardly go on, the worst first. Others come after these.
_RANK = {PatternName.STARVED_WRITER: 0, PatternName.CONVOY: 1, PatternName.SERIALISED: 2}
#: For a wait that only one sample has met.
_JUST_BEGUN = ", just begun"


def waiting_line(reason: str, width: int) -> Line:
    """The line above the headline when no newer snapshot comes for now."""
    return cut(make_line(" ", (" WAITING ", "flag"), (f" {reason}", "waiting")), width)


def headline(index: SnapshotIndex, width: int, past: PastAlerts = NO_ALERTS) -> Line:
    """The first thing to know about a process, in the longest wording that fits.

    Args:
        index: the snapshot.
        width: cells.
        past: the alerts that a calm moment tells of.
    """
    if index.snapshot.stopped:
        return make_line(
            (" STOPPED", "waiting"),
            " by a signal or a debugger: no thread goes on",
            (" (?)", "key"),
        )
    worst = most_waited_now(index)
    waiters = index.waiters_of(worst.id) if worst is not None else []
    if worst is not None and index.behind_waiters.get(worst.id):
        return _chain_line(index, worst, waiters, width)
    if worst is not None:
        full, now = _stuck_line(index, worst, waiters), _activity_spans(index, worst)
        brief, root = _short_stuck_line(index, worst, waiters)
        call = _call_spans(worst) if now else []
        # The activity of the holder is worth more than a long wording of the wait.
        tries = (
            make_line(*full, *now), make_line(*brief, *root, *now), make_line(*full, *call),
            make_line(*brief, *root, *call), full, make_line(*brief, *root), brief,
        )  # fmt: skip
        return next((line for line in tries if cell_len(line_text(line)) <= width), brief)
    if index.snapshot.ended:
        return make_line((" The process has ended; this is its last snapshot.", "dim"))
    if index.dormant:
        return make_line(
            (" The library is dormant and observes nothing; ", "dim"),
            ("L", "key"),
            (" sets another level.", "dim"),
        )
    unobserved_waits = _unobserved_line(index)
    if unobserved_waits:
        return unobserved_waits
    pattern = _pattern_line(index)
    if pattern:
        return cut(pattern, width)
    amid = _amid_work_line(index)
    if amid:
        return cut(amid, width)
    busiest = _busiest(index)
    unsignalled = _unsignalled_line(index)
    if unsignalled:
        name = index.lock_name(busiest.id) if busiest is not None else ""
        lately = _busiest_line(". Lately most for ", name, busiest) if busiest is not None else ()
        full = make_line(*unsignalled, *lately)
        return full if cell_len(line_text(full)) <= width else cut(unsignalled, width)
    if busiest is None:
        return _calm_line(index, width, past)
    return _lately_line(index, busiest, width, past)


def _lately_line(index: SnapshotIndex, busiest: Lock, width: int, past: PastAlerts) -> Line:
    """The line of a moment without a wait, after waits in the last interval."""
    # The library does not observe a wait that began while the library was dormant.
    none = "No thread waits" if index.snapshot.complete else "No wait is observed"
    name = index.lock_name(busiest.id)
    full = _busiest_line(f" {none} for a lock now. Most waited for lately: ", name, busiest)
    if past.earlier:
        more = (*full, (f"; {how_many(past.earlier)}: {{", "waiting"))
        full = more if cell_len(line_text(more)) <= width else full
    if cell_len(line_text(full)) <= width:
        return full
    return _busiest_line(f" {none} now; lately most for ", name, busiest)


def _pattern_line(index: SnapshotIndex) -> Line:
    """The pattern of contention that matters most; nothing without a pattern."""
    patterns = (
        pattern for pattern in index.snapshot.patterns if pattern.name is not PatternName.NO_SIGNAL
    )
    ranked = sorted(patterns, key=lambda pattern: _RANK.get(pattern.name, len(_RANK)))
    if not ranked:
        return ()
    first = ranked[0]
    lock = [(" of ", "waiting"), (index.lock_name(first.lock), "strong")] if first.lock else []
    words = f" {first.name.words.capitalize()}"
    return make_line((words, "waiting"), *lock, f": {first.evidence}")


def _amid_work_line(index: SnapshotIndex) -> Line:
    """The threads that wait for work in flight; nothing without such a thread."""
    threads = amid_work.waiters(index.snapshot)
    waits = [thread.waiting_for for thread in threads if thread.waiting_for is not None]
    if not waits:
        return ()
    many = len(waits) > 1
    who = f"{len(waits)} threads wait" if many else f"{index.thread_name(threads[0].tid)} waits"
    longest = f"up to {duration(waits[0].duration_s)}" if many else duration(waits[0].duration_s)
    return make_line(
        f" {who} amid their work" if many else f" {who} amid its work",
        (f", {longest}", "waiting"),
        ", for no lock: ",
        ("i", "key"),
        (" shows idle waits", "dim"),
    )


def _unsignalled_line(index: SnapshotIndex) -> Line:
    """The longest wait for a condition that no signal has reached; nothing without such a wait.

    The line is plain, because a pool without work looks the same.
    """
    patterns = index.snapshot.patterns
    unsignalled = [
        pattern for pattern in patterns if pattern.name is PatternName.NO_SIGNAL and pattern.tids
    ]
    if not unsignalled:
        return ()
    tids = unsignalled[0].tids  # the longest wait is first
    waits = [index.threads[tid].waiting_for for tid in tids if tid in index.threads]
    longest = duration(max([wait.duration_s for wait in waits if wait is not None], default=0.0))
    many = len(tids) > 1
    who = f"{len(tids)} threads wait" if many else f"{index.thread_name(tids[0])} waits"
    return make_line(
        f" {who} for ",
        (index.lock_name(unsignalled[0].lock), "strong"),
        f", the longest {longest}" if many else f" for {longest}",
        ": no signal came meanwhile",
    )


def _unobserved_line(index: SnapshotIndex) -> Line:
    """The wait for a lock that the library does not observe; nothing without such a wait."""
    waits = [wait for wait in index.snapshot.unobserved_waits if wait.idle is False]
    if not waits:
        return ()
    longest = max(waits, key=lambda wait: wait.duration_s or 0.0)
    name = index.thread_name(longest.tid)
    count = sum((wait.type, wait.address) == (longest.type, longest.address) for wait in waits)
    who = f"{count} threads wait" if count > 1 else f"{name} waits"
    return make_line(
        (f" {who} for ", "waiting"),
        (longest.type or "a futex", "strong"),
        "; its holder is not known: the library does not observe it",
    )


def _busiest_line(begin: str, name: str, lock: Lock) -> Line:
    return make_line((begin, "dim"), (name, "strong"), f", {duration(lock.rates.wait)} a second")


def _calm_line(index: SnapshotIndex, width: int, past: PastAlerts) -> Line:
    """The line of a moment without a wait: first the alerts, which the user may want to see."""
    begin = "Quiet now. " if index.snapshot.complete else "No wait is observed now. "
    last = past.earlier[-1].lock if past.earlier else 0
    lock = index.lock_name(last) if last in index.locks else ""
    if alerts := quiet_text(past, lock, begin, width):
        return make_line((alerts, "waiting"))
    return make_line((_calm_text(index), "dim"))


def _calm_text(index: SnapshotIndex) -> str:
    """The message that no thread waits for a lock. The owners of semaphores are not known."""
    if not index.snapshot.complete:
        return " No wait for a lock is observed; one begun while the library was dormant is not."
    if lately := _last_minute(index):
        return lately
    waits = (thread.waiting_for for thread in index.snapshot.threads if thread.alive)
    on_semaphores = [w.duration_s for w in waits if w is not None and w.kind is Kind.SEM]
    if not on_semaphores:
        return " No thread waits for a lock that is watched."
    longest = duration(max(on_semaphores))
    many = f"{len(on_semaphores)} wait" if len(on_semaphores) > 1 else "1 waits"
    return f" No thread waits for a mutex or rwlock; {many} on semaphores, the longest {longest}."


def _last_minute(index: SnapshotIndex) -> str:
    """The waits of the last minute, now that no thread waits; "" for a minute without a wait."""
    waited = {
        lock: sum(parts)
        for lock, parts in index.snapshot.recent_lock_waits.items()
        if lock in index.locks and not index.locks[lock].idle
    }
    total = sum(waited.values())
    if total < _MIN_LATELY_S:
        return ""
    worst = max(waited, key=lambda lock: waited[lock])
    return (
        f" Quiet now. In the last minute threads waited {duration(total)} for locks, most for"
        f" {index.lock_name(worst)}."
    )


def most_waited_now(index: SnapshotIndex) -> Lock | None:
    """Return the lock that the headline is about: the present waits behind it are the longest.

    A lock whose holders wait themselves is a symptom, so the lock at the root of the chain counts.
    """
    locks = (root.lock for root in index.blocking.roots)
    return next((index.locks[id_] for id_ in locks if id_ in index.locks), None)


def _busiest(index: SnapshotIndex) -> Lock | None:
    contended = [lock for lock in index.snapshot.locks if not lock.idle]
    busiest = max(contended, key=lambda lock: lock.rates.wait, default=None)
    return busiest if busiest is not None and busiest.rates.wait >= _CALM_WAIT else None


def _stuck_line(index: SnapshotIndex, lock: Lock, waiters: Sequence[Thread]) -> Line:
    since = _since(waiters[0])
    many = len(waiters) > 1
    who = f"{len(waiters)} threads wait" if many else f"{index.thread_name(waiters[0].tid)} waits"
    longest = f", the longest {since}" if many else f" for {since}"
    return make_line(
        (f" {who} for ", "waiting"),
        (index.lock_name(lock.id), "strong"),
        *_pattern_spans(index, lock),
        longest if since else _JUST_BEGUN,
        *_holder_spans(index, lock, waiters[0]),
    )


def _chain_line(index: SnapshotIndex, lock: Lock, waiters: Sequence[Thread], width: int) -> Line:
    """The line about a lock at the root of a chain, in the longest wording that fits."""
    count = len(waiters) + index.behind_waiters[lock.id]
    name, pattern = (index.lock_name(lock.id), "strong"), _pattern_spans(index, lock)
    since = _since(waiters[0])
    full = make_line(
        (f" {count} threads wait behind ", "waiting"),
        name,
        *pattern,
        f", the longest {since}" if since else _JUST_BEGUN,
        *_holder_spans(index, lock, waiters[0]),
    )
    begin = make_line((" ", "text"), name, *pattern, (f": {count} threads behind it", "waiting"))
    held = [*begin, *_holder_spans(index, lock, waiters[0])]
    short = [*begin, *_short_holder_spans(index, lock, waiters[0])]
    now = _activity_spans(index, lock)
    call = _call_spans(lock) if now else []
    tries = [(*full, *now), (*held, *now), (*short, *now), (*held, *call), (*short, *call), short]
    lines = [make_line(*spans) for spans in tries]
    fitting = (line for line in lines if cell_len(line_text(line)) <= width)
    return next(fitting, cut(lines[-1], width))


def _short_holder_spans(index: SnapshotIndex, lock: Lock, waiter: Thread) -> list[Span | str]:
    """The name of the holder alone."""
    holders = lock.holders or (waiter.waiting_for.holders if waiter.waiting_for else ())
    if not holders:
        return [("; holder not known", "dim")]
    return ["; held by ", (index.holders(holders, lock.id), "holder")]


def _since(waiter: Thread) -> str:
    """How long the thread has waited, "" where this scan is the first to observe the wait."""
    wait = waiter.waiting_for
    return (
        lasting(wait.duration_s, wait.is_lower_bound)
        if wait is not None and wait.duration_s > 0.0
        else ""
    )


def _short_stuck_line(
    index: SnapshotIndex, lock: Lock, waiters: Sequence[Thread]
) -> tuple[Line, list[Span | str]]:
    """The line, and what follows where that fits."""
    wait, since = waiters[0].waiting_for, _since(waiters[0])
    many = len(waiters) > 1
    who = f"{len(waiters)} wait" if many else f"{index.thread_name(waiters[0].tid)} waits"
    holders = lock.holders or (wait.holders if wait is not None else ())
    spans: list[Span | str] = [
        (f" {index.lock_name(lock.id)}", "strong"),
        *_pattern_spans(index, lock),
        f": {who} {since}" if since else f": {who}{_JUST_BEGUN}",
    ]
    if holders:
        held = index.held(holders[0], lock.id)
        frame = index.snapshot.sites.get(held.site) if held is not None else None
        spans += ["; held by ", (index.holders(holders, lock.id), "holder")]
        if held is not None and held.duration_s is not None:
            spans.append(f" {duration(held.duration_s)}")
        if frame is not None:
            spans += [" at ", (shortest_location(frame), "where")]
    if not holders:
        return make_line(*spans), [("; holder not known", "dim")]
    return make_line(*spans), _root_spans(index, holders[0])


def _pattern_spans(index: SnapshotIndex, lock: Lock) -> list[Span | str]:
    """The pattern of the lock in which threads hardly go on."""
    names = {pattern.name for pattern in index.snapshot.patterns if pattern.lock == lock.id}
    ranked = [name for name in _RANK if name in names]
    return [(f" ({ranked[0].words})", "waiting")] if ranked else []


def _holder_spans(index: SnapshotIndex, lock: Lock, waiter: Thread) -> list[Span | str]:
    wait = waiter.waiting_for
    holders = lock.holders or (wait.holders if wait is not None else ())
    if not holders:
        return [("; its holder is not known", "dim")]
    holder = holders[0]
    held = index.held(holder, lock.id)
    spans: list[Span | str] = ["; held by ", (index.holders(holders, lock.id), "holder")]
    if held is not None and held.duration_s is not None:
        spans.append(f" for {duration(held.duration_s)}")
    site = index.held_site(holder, lock.id)
    if site:
        spans += [" at ", (site, "where")]
    return spans + _root_spans(index, holder)


def _activity_spans(index: SnapshotIndex, lock: Lock) -> list[Span | str]:
    """The activity of the holder, unless it waits: ``_root_spans`` has that."""
    now = lock.holder_activity
    holding = index.threads.get(now.tid) if now is not None else None
    if holding is None or holding.waiting_for is not None:
        return []
    words, style = holder_activity_span(index, lock)
    return [", now ", (words, style)] if words else []


def _call_spans(lock: Lock) -> list[Span | str]:
    """The system call of the holder, without its arguments."""
    call = lock.holder_activity.call if lock.holder_activity is not None else ""
    return [", now in ", (call, "text")] if call else []


def _root_spans(index: SnapshotIndex, tid: int) -> list[Span | str]:
    """If the holder waits itself: the thread at the end of the chain, and the lock it wants."""
    chain = list(index.chain(tid))
    spans: list[Span | str] = []
    if len(chain) > 1:
        spans += [", which waits for ", (index.thread_name(chain[-1].tid), "holder")]
    last = chain[-1].waiting_for if chain else None
    if last is not None and not last.holders:
        spans += [", which waits for ", (index.lock_name(last.lock), "strong")]
    return spans
