"""The headline: the lock that threads wait for, since when, its holder, and where."""

from __future__ import annotations

from locktop.collector.model import Kind, Lock, PatternName
from locktop.collector.render.words import amid_work, child_waits
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import duration
from locktop.tui.views.headline_budget import Wording, fit_wording
from locktop.tui.views.past_alerts import NO_ALERTS, PastAlerts, how_many, quiet_text
from locktop.tui.views.styled_line import Line, cut, make_line
from locktop.tui.views.wait_headline import RANK, wait_line

#: Fewer seconds waited per second are not worth a headline.
_CALM_WAIT = 0.001
#: The key for a program that hangs without a wait for a lock.
_STACKS = " a: all stacks"
#: Fewer seconds of waits in the last minute are not worth a headline.
_MIN_LATELY_S = 0.1
#: The least cells of a lock's name, beside words that say less than the name.
_MOST_OF_NAME = 30


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
    if worst is not None:
        return wait_line(index, worst, width)
    if index.snapshot.ended:
        return make_line((" The process has ended; this is its last snapshot.", "dim"))
    if index.dormant:
        return make_line(
            (" The library is dormant and observes nothing; ", "dim"),
            ("L", "key"),
            (" sets another level.", "dim"),
        )
    if unobserved_waits := _unobserved_line(index):
        return cut(unobserved_waits, width)
    if pattern := _pattern_line(index, width):
        return pattern
    amid = _amid_work_line(index)
    if amid:
        return cut(amid, width)
    busiest = _busiest(index)
    if unsignalled := _unsignalled_line(index, busiest, width):
        return unsignalled
    if busiest is None:
        return _calm_line(index, width, past)
    return _lately_line(index, busiest, width, past)


def _lately_line(index: SnapshotIndex, busiest: Lock, width: int, past: PastAlerts) -> Line:
    """The line of a moment without a wait, after waits in the last interval."""
    # The library does not observe a wait that began while the library was dormant.
    none = "No thread waits" if index.snapshot.complete else "No wait is observed"
    rate = f", {duration(busiest.rates.wait)} a second"
    full = (f" {none} for a lock now. Most waited for lately: ", "dim")
    alerts = ((f"; {how_many(past.earlier)} (key {{)", "waiting"),) if past.earlier else ()
    wordings = (
        Wording((full,), (rate, *alerts)),
        Wording((full,), (rate,)),
        Wording(((f" {none} now; lately most for ", "dim"),), (rate,), _MOST_OF_NAME),
        Wording(((" Lately most for ", "dim"),), (rate,), 0),
    )
    return fit_wording(index.lock_name(busiest.id), wordings, width)


def _pattern_line(index: SnapshotIndex, width: int) -> Line:
    """The pattern of contention that matters most; nothing without a pattern."""
    patterns = (
        pattern for pattern in index.snapshot.patterns if pattern.name is not PatternName.NO_SIGNAL
    )
    ranked = sorted(patterns, key=lambda pattern: RANK.get(pattern.name, len(RANK)))
    if not ranked:
        return ()
    first = ranked[0]
    if not first.lock:
        words = (f" {first.name.heading}", "waiting")
        return cut(make_line(words, f": {first.evidence}"), width)
    word = (f" ({first.name.words})", "waiting")
    clauses = first.evidence.split("; ")
    wordings = [
        Wording((" ",), (word, f": {'; '.join(clauses[:count])}"), least)
        for count in range(len(clauses), 0, -1)
        for least in (None, _MOST_OF_NAME)
    ]
    wordings.append(Wording((" ",), (word, f": {clauses[0]}"), 0))
    return fit_wording(index.lock_name(first.lock), wordings, width)


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


def _unsignalled_line(index: SnapshotIndex, busiest: Lock | None, width: int) -> Line:
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
    begin = f" {who} for "
    end = f", the longest {longest}" if many else f" for {longest}"
    full, brief = f"{end}: no signal came meanwhile", f"{end}: no signal"
    lately = Wording((begin,), (full, *_busiest_spans(index, busiest)))
    wordings = (
        *((lately,) if busiest is not None else ()),
        Wording((begin,), (full,), _MOST_OF_NAME),
        Wording((begin,), (brief,), 0),
    )
    return fit_wording(index.lock_name(unsignalled[0].lock), wordings, width)


def _busiest_spans(index: SnapshotIndex, busiest: Lock | None) -> Line:
    if busiest is None:
        return ()
    name = index.lock_name(busiest.id)
    rate = f", {duration(busiest.rates.wait)} a second"
    return (". Lately most for ", "dim"), (name, "strong"), (rate, "text")


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


def _calm_line(index: SnapshotIndex, width: int, past: PastAlerts) -> Line:
    """The line of a moment without a wait: first the alerts, which the user may want to see."""
    if of_child := child_waits.sentence(index.snapshot):
        return cut(make_line((f" {of_child}", "waiting")), width)
    begin = "Quiet now. " if index.snapshot.complete else "No wait is observed now. "
    last = past.earlier[-1].lock if past.earlier else 0
    lock = index.lock_name(last) if last in index.locks else ""
    if alerts := quiet_text(past, lock, begin, width):
        return make_line((alerts, "waiting"))
    if not index.snapshot.complete:
        text = " No wait for a lock is observed; one begun while the library was dormant is not."
        return cut(make_line((text, "dim")), width)
    return _last_minute_line(index, width) or cut(
        make_line((_calm_text(index, width), "dim")), width
    )


def _calm_text(index: SnapshotIndex, width: int) -> str:
    """The message that no thread waits for a lock, the longest that fits.

    The owners of semaphores are not known. A thread may wait for a child or for the network: the
    stacks of all threads show that.
    """
    waits = (thread.waiting_for for thread in index.snapshot.threads if thread.alive)
    on_semaphores = [w for w in waits if w is not None and w.kind is Kind.SEM]
    if index.snapshot.is_sampled and index.snapshot.names_left:
        return " Waits for locks are not known yet: they go by names that are not read yet."
    if not on_semaphores:
        text = " No thread waits for a lock that is watched."
        return text + _STACKS if len(text + _STACKS) <= width else text
    longest_s = max(wait.duration_s for wait in on_semaphores)
    how_long = f"the longest {duration(longest_s)}", f"up to {duration(longest_s)}"
    ids = {wait.lock for wait in on_semaphores}
    rate = sum(index.locks[id_].rates.wait for id_ in ids if id_ in index.locks)
    if longest_s < rate:  # short sleeps: a post may wake a thread in vain
        how_long = (
            f"{'together ' * (len(on_semaphores) > 1)}{duration(rate)} a second",
            f"{duration(rate)} a second",
        )
    count = len(on_semaphores)
    wait = f"{count} wait" if count > 1 else "1 waits"
    full = f" No thread waits for a mutex or rwlock; {wait} on semaphores, {how_long[0]}."
    brief = f" No wait for a mutex or rwlock; {count} on semaphores, {how_long[1]}."
    tries = (full + _STACKS, brief + _STACKS, brief)
    return next((text for text in tries if len(text) <= width), brief)


def _last_minute_line(index: SnapshotIndex, width: int) -> Line:
    """The waits of the last minute, now that no thread waits; nothing without a wait in it."""
    waited = {
        lock: sum(parts)
        for lock, parts in index.snapshot.recent_lock_waits.items()
        if lock in index.locks and not index.locks[lock].idle
    }
    total = sum(waited.values())
    if total < _MIN_LATELY_S:
        return ()
    worst = max(waited, key=lambda lock: waited[lock])
    full = f" Quiet now. In the last minute threads waited {duration(total)} for locks, most for "
    brief = f" Quiet now; {duration(total)} of waits in the last minute, most for "
    wordings = (
        Wording(((full, "dim"),), ((".", "dim"),)),
        Wording(((brief, "dim"),), (), _MOST_OF_NAME // 2),
        Wording(((f" Quiet; waited {duration(total)} lately for ", "dim"),), (), 0),
    )
    return fit_wording(index.lock_name(worst), wordings, width)


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
