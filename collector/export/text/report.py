"""A snapshot as a page of plain text, for a ticket: what is wrong first, figures after it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from locktop.collector.analysis import blame_chains, deadlock_report, lock_classes, thread_groups
from locktop.collector.export import snapshot_intervals
from locktop.collector.export.text import activity as activity_text
from locktop.collector.export.text import deadlock, lock_order, time_split
from locktop.collector.format import activity, units, unobserved_waits
from locktop.collector.format.misuse import misuse_sentence
from locktop.collector.format.source_location import full_location, function_name, path_and_line
from locktop.collector.format.wrap import wrapped
from locktop.collector.model import (
    SIGNALLED_KINDS,
    Blame,
    Frame,
    Kind,
    Lock,
    LockClass,
    Snapshot,
    Thread,
    ThreadGroup,
    Wait,
)

_Row = Lock | LockClass
_MAX_LOCKS = 20
_MAX_THREADS = 50
_MAX_FRAMES = 30
_MAX_TIDS = 8
_MAX_MARKS = 20
#: Of where the waits were: of so many locks, so many stacks each.
_MAX_PLACES = (5, 3)
#: Of the wait for the lock that is waited for most: where those with less were says nothing.
_WORTH_A_STACK = 0.001
_MAX_BLAMED = 3
_MAX_MISUSES = 10
_MAX_PATTERNS = 10
_MAX_HOLDERS = 5
_HEADINGS = ("wait", "waited", "max wait", "taken", "held", "kind", "lock")
_NO_WAIT_SEEN = "LOCKS: no wait for a mutex or rwlock was seen"
#: Of an interval; the longest wait is known of the whole time only.
_HEADINGS_OF_AN_INTERVAL = (
    "wait", "waited", "max since start", "taken", "held", "kind", "lock",
)  # fmt: skip
_SIGNAL_HEADINGS = ("waiting", "longest", "signals", "kind", "lock")
_SIGNAL_HEADINGS_OF_AN_INTERVAL = (
    "waiting", "longest", "signals", "since start", "kind", "lock",
)  # fmt: skip


def render(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = 100, idle: bool = False
) -> str:
    """Return the page. With ``before``, an earlier look at the same process, the figures of locks
    are those of the time between the two; with ``idle`` the threads that wait for work are listed
    too. No line is longer than ``width``."""
    page = _Page(snapshot, before, idle)
    return "\n".join(part for line in page.lines() for part in wrapped(line, width)) + "\n"


class _Page:
    def __init__(self, snapshot: Snapshot, before: Snapshot | None, idle: bool) -> None:
        self._snapshot = snapshot
        self._with_idle = idle
        self._before = {lock.id: lock for lock in before.locks} if before else None
        self._span_s = snapshot.duration_s - (before.duration_s if before else 0.0)
        self._threads = {thread.tid: thread for thread in snapshot.threads}
        self._locks = {lock.id: lock for lock in snapshot.locks}
        self._class_of = lock_classes.by_lock(lock_classes.find(snapshot.locks))
        self._groups = thread_groups.find(snapshot.threads, self._locks, self._class_of)

    def lines(self) -> Iterator[str]:
        yield from self._head()
        for report in deadlock_report.reports(self._snapshot):
            yield ""
            yield from deadlock.lines(report)
        yield ""
        yield from self._lock_table()
        yield from self._patterns()
        yield from self._holders_now()
        yield from self._signal_table()
        yield from self._waiting_threads()
        yield from self._waits_unseen()
        yield from self._threads_now()
        if self._with_idle:
            yield from self._idle_threads()
        yield from self._times()
        yield from self._places()
        yield from self._misuses()
        yield from self._marks()
        potential = list(lock_order.lines(self._snapshot))
        yield from ["", *potential] if potential else ()
        if self._snapshot.notes:
            yield from ("", "NOTES", *(f"  {note}" for note in self._snapshot.notes))

    # ---- what was looked at ----

    def _head(self) -> Iterator[str]:
        snapshot, process = self._snapshot, self._snapshot.process
        counts = self._before is None and not snapshot.is_sampled
        yield f"locktop {snapshot.taken_at} on {snapshot.host}, source {snapshot.source}"
        yield f"process {process.pid} {process.comm}: {' '.join(process.cmdline) or process.exe}"
        yield (
            f"started {process.started_at}, {units.size(process.rss_bytes)} resident,"
            f" {'counting' if counts else 'looked at'} for"
            f" {units.duration(self._span_s)}"
        )
        yield self._counts()
        if snapshot.unobserved_waiters:
            yield self._unseen()
        if snapshot.ended:
            yield "the process has ended; this is the last that was seen of it"

    def _counts(self) -> str:
        ended = self._snapshot.ended  # with it all its threads
        counted = [thread for thread in self._snapshot.threads if thread.alive or ended]
        states = Counter(map(activity.state, counted))
        listed = ", ".join(f"{count} {state}" for state, count in states.most_common())
        doing = "" if ended else f" ({listed})"
        left_out = self._snapshot.locks_left_out
        return (
            f"{units.counted(len(counted), 'thread')}{doing},"
            f" {units.counted(len(self._locks) + left_out, 'lock')}{self._lost()}"
        )

    def _lost(self) -> str:
        lost = self._snapshot.lost_events
        return (
            f", {units.counted(lost, 'record')} overwritten (counted all the same)" if lost else ""
        )

    def _unseen(self) -> str:
        waiters = self._snapshot.unobserved_waiters
        verb = "waits" if len(waiters) == 1 else "wait"
        where = "below" if self._snapshot.unobserved_waits else "the notes"
        return f"{self._threads_named(waiters)} {verb} for something that is not seen: see {where}"

    # ---- locks ----

    def _lock_table(self) -> Iterator[str]:
        rows = [self._lock_row(lock) for lock in self._worth_showing()]
        if not rows:
            yield _NO_WAIT_SEEN
        else:
            sampled = self._snapshot.is_sampled
            whole = "while it was looked at" if sampled else "since the process started"
            when = "in this time" if self._before is not None else whole
            yield f"LOCKS, most wait first, {when}"
            yield from _table(_HEADINGS if self._before is None else _HEADINGS_OF_AN_INTERVAL, rows)
        yield from self._other_waits()

    def _other_waits(self) -> Iterator[str]:
        """Those for work, as far as known: that somebody has a semaphore is seldom seen."""
        waited: dict[Kind, float] = {}
        for lock in self._snapshot.locks:
            if lock.idle_s:
                waited[lock.kind] = waited.get(lock.kind, 0.0) + self._figures(lock)["idle_s"]
        most_first = sorted(waited.items(), key=lambda entry: -entry[1])
        listed = ", ".join(f"{kind} {units.duration(time)}" for kind, time in most_first if time)
        if listed:
            yield f"  waits whose holder is not known, or that are for work: {listed}"

    def _worth_showing(self) -> list[_Row]:
        waited = [lock for lock in self._snapshot.locks if lock.wait_s or lock.contended]
        contended = self._folded(lock for lock in waited if not lock.idle)
        contended.sort(key=lambda row: -self._contention_s(row))
        return contended[:_MAX_LOCKS]

    def _folded(self, locks: Iterable[Lock]) -> list[_Row]:
        """Each class once, in the place of its first lock."""
        rows: dict[int, _Row] = {}
        for lock in locks:
            of = self._class_of.get(lock.id)
            rows[of.locks[0] if of else lock.id] = of or lock
        return list(rows.values())

    def _members(self, row: _Row) -> list[Lock]:
        return [self._locks[id_] for id_ in row.locks] if isinstance(row, LockClass) else [row]

    def _figures(self, lock: _Row) -> dict[str, float]:
        if self._before is None:
            return {
                "wait_s": lock.wait_s,
                "idle_s": lock.idle_s,
                "contended": lock.contended,
                "acquisitions": lock.acquisitions,
                "hold_s": lock.hold_s,
                "signals": lock.signals,
            }
        return snapshot_intervals.class_interval(self._members(lock), self._before)

    def _contention_s(self, lock: _Row) -> float:
        figures = self._figures(lock)
        return figures["wait_s"] - figures["idle_s"]

    def _lock_row(self, lock: _Row) -> tuple[str, ...]:
        figures = self._figures(lock)
        if self._snapshot.is_sampled:
            return self._sampled_row(lock)
        return (
            units.duration(self._contention_s(lock)),
            f"{figures['contended']:.0f}" if figures["contended"] else _waiting(lock) or "0",
            units.duration(lock.wait_max_s),
            f"{figures['acquisitions']:.0f}",
            units.duration(figures["hold_s"]),
            str(lock.kind),
            self._described(lock, bool(figures["contended"])),
        )

    def _sampled_row(self, lock: _Row) -> tuple[str, ...]:
        """How often it was taken, and held for how long, is not known."""
        error = math.hypot(*(one.wait_error_s for one in self._members(lock)))
        return (
            units.duration(self._contention_s(lock)) + f" +-{units.duration(error)}" * (error > 0),
            _waiting(lock) or "-",
            units.duration(lock.wait_max_s),
            "-",
            "-",
            str(lock.kind),
            self._described(lock, with_waiters=False),
        )

    def _described(self, lock: _Row, with_waiters: bool) -> str:
        parts = [lock.name.removeprefix(f"{lock.kind} ")]
        if isinstance(lock, LockClass):
            return ", ".join([*parts, *self._of_class(lock, with_waiters)])
        parts[0] = _with_type(lock, parts[0])
        if lock.holders:
            doubt = " (not certain)" if lock.foreign_releases else ""
            parts.append(f"held by {self._threads_named(lock.holders)}{doubt}")
            parts += self._holder_does(lock)
        if with_waiters and lock.waiters:
            parts.append(_waiting(lock))
        return ", ".join(parts)

    def _holder_does(self, lock: Lock) -> Iterator[str]:
        now = lock.holder_activity
        doing = activity.doing(now, now.tid) if now is not None else ""
        if now is not None and doing:
            who = f"thread {now.tid} is " if len(lock.holders) > 1 else "which is now "
            yield who + doing

    def _of_class(self, of: LockClass, with_waiters: bool) -> Iterator[str]:
        """How many there are, and which is the worst."""
        destroyed = f" ({of.destroyed} destroyed)" if of.destroyed else ""
        yield f"{units.counted(len(of.locks), 'lock')}{destroyed}"
        if with_waiters and of.waiters:
            yield _waiting(of)
        worst = max(self._members(of), key=self._contention_s)
        wait_s = self._contention_s(worst)
        if not wait_s:
            return
        single = lock_classes.within(worst, of).removeprefix("at ")
        yield f"the worst {single} with {units.duration(wait_s)}"
        if worst.holders:
            yield f"held by {self._threads_named(worst.holders)}"

    def _places(self) -> Iterator[str]:
        """Where the waits were that are over: with these a page tells of code even where nobody
        happens to wait when it is made."""
        most_locks, most_stacks = _MAX_PLACES
        headed = False
        rows = self._worth_showing()[:most_locks]
        least_s = max(map(self._contention_s, rows), default=0.0) * _WORTH_A_STACK
        for lock in (row for row in rows if self._contention_s(row) >= least_s):
            for stack, count, wait_s in self._stacks_of(lock)[:most_stacks]:
                if not headed:
                    headed = True
                    yield from ("", "WHERE THE WAITS WERE")
                whole = self._contention_s(lock)
                share = int(100 * min(wait_s / whole, 1.0)) if whole else 0
                yield (
                    f"  {self._named(lock)}, {share} % of its wait:"
                    f" {units.duration(wait_s)} in {units.counted(count, 'wait')}"
                )
                yield from self._stack(stack, "      ")
            if headed:
                yield from self._held_meanwhile(lock)

    def _held_meanwhile(self, row: _Row) -> Iterator[str]:
        """Who had it while others waited: the most to blame."""
        blamed = self._blame_of(row)
        whole = sum(wait_s for _, wait_s in blamed)
        for number, (blame, wait_s) in enumerate(blamed[:_MAX_BLAMED]):
            if number == 0:
                yield f"    {self._named(row)} was held meanwhile by"
            taken = self._snapshot.sites.get(blame.site)
            yield (
                f"      {blame.nameless or self._thread(blame.tid)},"
                f" {int(100 * wait_s / whole)} %: {units.duration(wait_s)}"
                + (f", taken in {full_location(taken)}" if taken else "")
                + (f", while it waited for {self._lock(blame.through)}" if blame.through else "")
            )
        if blamed:
            yield from self._ends_of_chains(row)

    def _holders_now(self) -> Iterator[str]:
        """Where in the code those sleep that have what others wait for."""
        stacks = self._snapshot.stacks
        told = [
            (lock, now)
            for lock in self._snapshot.locks
            if (now := lock.holder_activity) is not None and now.stack in stacks
        ]
        if told:
            yield from ("", "HOLDERS NOW, of locks that others wait for")
        for lock, now in told[:_MAX_HOLDERS]:
            has = f"  {self._thread(now.tid)} has {self._lock(lock.id)}"
            yield f"{has} and is {activity.doing(now, now.tid)}"
            if now.stack_age_s:
                yield f"      seen asleep {units.duration(now.stack_age_s)} ago:"
            yield from self._stack(now.stack, "      ")

    def _ends_of_chains(self, row: _Row) -> Iterator[str]:
        """Where a holder waited itself, for whom in the end."""
        if isinstance(row, LockClass) or not blame_chains.is_chained(row, self._locks):
            return
        yield "    and at the ends of the chains by"
        for root in blame_chains.roots(row, self._locks)[:_MAX_BLAMED]:
            who = Blame(root.tid, root.site, root.wait_s)
            taken = self._snapshot.sites.get(root.site)
            yield (
                f"      {who.nameless or self._thread(root.tid)},"
                f" {int(100 * root.wait_s / row.wait_s)} %: {units.duration(root.wait_s)},"
                f" with {self._lock(root.lock)}"
                + (f", taken in {full_location(taken)}" if taken else "")
            )

    def _blame_of(self, row: _Row) -> list[tuple[Blame, float]]:
        """With the seconds, the most first."""
        if self._before is None:
            found = [(one, one.wait_s) for one in lock_classes.blame(self._members(row))]
        else:
            sums: dict[Blame, float] = {}
            for lock in self._members(row):
                grown = snapshot_intervals.blame_intervals(lock, self._before.get(lock.id))
                for one, wait_s in zip(lock.blame, grown, strict=True):
                    who = replace(one, wait_s=0.0)
                    sums[who] = sums.get(who, 0.0) + wait_s
            found = list(sums.items())
        return sorted(((one, s) for one, s in found if s > 0), key=lambda entry: -entry[1])

    def _stacks_of(self, row: _Row) -> list[tuple[int, int, float]]:
        """Stack, waits, seconds; most wait first."""
        sums: dict[int, tuple[int, float]] = {}
        for lock in self._members(row):
            for stack, count, wait_s in self._stacks_of_one(lock):
                counted, waited_s = sums.get(stack, (0, 0.0))
                sums[stack] = (counted + count, waited_s + wait_s)
        found = [(stack, *summed) for stack, summed in sums.items() if summed[0]]
        return sorted(found, key=lambda one: -one[2])

    def _stacks_of_one(self, lock: Lock) -> list[tuple[int, int, float]]:
        if self._before is None:
            return [
                (entry.stack, entry.count, entry.wait_s)
                for entry in lock.wait_stacks
                if not entry.idle
            ]
        changed = snapshot_intervals.stack_intervals(lock, self._before.get(lock.id))
        return [
            (entry.stack, count, wait_s)
            for entry, (count, wait_s) in zip(lock.wait_stacks, changed, strict=True)
            if not entry.idle
        ]

    # ---- patterns ----

    def _patterns(self) -> Iterator[str]:
        found = self._snapshot.patterns
        if found:
            yield from ("", "WHAT IT LOOKS LIKE")
        for pattern in found[:_MAX_PATTERNS]:
            at = f" at {self._lock(pattern.lock)}" if pattern.lock else ""
            yield f"  {pattern.name.words}{at}: {pattern.evidence}"
            yield f"    {pattern.advice}"
        if len(found) > _MAX_PATTERNS:
            yield f"  and {len(found) - _MAX_PATTERNS} more"

    # ---- misuse ----

    def _misuses(self) -> Iterator[str]:
        if self._snapshot.misuses:
            yield from ("", "AGAINST THE RULES OF PTHREADS")
        for misuse in self._snapshot.misuses[:_MAX_MISUSES]:
            said = misuse_sentence(misuse, self._thread, self._lock)
            yield f"  {self._lock(misuse.lock)}: {said}"
            yield from self._stack(misuse.stack, "      ")
        if len(self._snapshot.misuses) > _MAX_MISUSES:
            yield f"  and {len(self._snapshot.misuses) - _MAX_MISUSES} more"

    # ---- semaphores and conditions ----

    def _signal_table(self) -> Iterator[str]:
        """Those that threads wait for now, and how often this process signalled them."""
        waited = self._folded(
            lock for lock in self._snapshot.locks if lock.kind in SIGNALLED_KINDS and lock.waiters
        )
        if not waited:
            return
        waited.sort(key=lambda lock: -len(lock.waiters))
        yield ""
        yield (
            f"SEMAPHORES AND CONDITIONS WAITED FOR {self._now},"
            " and how often this process signalled them"
        )
        headings = _SIGNAL_HEADINGS if self._before is None else _SIGNAL_HEADINGS_OF_AN_INTERVAL
        yield from _table(headings, [self._signal_row(lock) for lock in waited[:_MAX_LOCKS]])
        if len(waited) > _MAX_LOCKS:
            yield f"  and {len(waited) - _MAX_LOCKS} more"

    def _signal_row(self, lock: _Row) -> tuple[str, ...]:
        threads = (self._threads.get(tid) for tid in lock.waiters)
        waits = [thread.waiting_for for thread in threads if thread and thread.waiting_for]
        longest = max(waits, key=lambda wait: wait.duration_s, default=None)
        count = f", {units.counted(len(lock.locks), 'lock')}" if isinstance(lock, LockClass) else ""
        since_start = () if self._before is None else (str(lock.signals),)
        return (
            str(len(lock.waiters)),
            "-"
            if longest is None
            else f"{'>' * longest.is_lower_bound}{units.duration(longest.duration_s)}",
            f"{self._figures(lock)['signals']:.0f}",
            *since_start,
            str(lock.kind),
            lock.name.removeprefix(f"{lock.kind} ") + count,
        )

    # ---- threads ----

    @property
    def _now(self) -> str:
        return "AT THE END" if self._snapshot.ended else "NOW"

    def _waiting_threads(self) -> Iterator[str]:
        waiting = [
            (group, group.wait)
            for group in self._groups
            if group.wait and (not group.wait.idle or self._is_wanted(group.first))
        ]
        yield from self._waits(f"THREADS WAITING {self._now}, longest first", waiting, _MAX_FRAMES)

    def _idle_threads(self) -> Iterator[str]:
        idle = [(group, group.wait) for group in self._groups if group.wait and group.wait.idle]
        yield from self._waits(f"THREADS WAITING FOR WORK {self._now}, longest first", idle, 1)

    def _waits(
        self, heading: str, waiting: list[tuple[ThreadGroup, Wait]], most_frames: int
    ) -> Iterator[str]:
        waiting.sort(key=lambda entry: -entry[1].duration_s)
        if waiting:
            yield from ("", heading)
        for group, wait in waiting[:_MAX_THREADS]:
            yield from self._waiting_group(group, wait, most_frames)
        left = sum(len(group.threads) for group, _ in waiting[_MAX_THREADS:])
        if left:
            yield f"  and {left} more"

    def _waits_unseen(self) -> Iterator[str]:
        found = list(unobserved_waits.lines(self._snapshot, self._thread, self._frames))
        yield from ["", *found] if found else ()

    def _threads_now(self) -> Iterator[str]:
        found = list(activity_text.lines(self._snapshot, self._now, self._thread, self._frames))
        yield from ["", *found] if found else ()

    def _times(self) -> Iterator[str]:
        span_s = units.duration(self._snapshot.interval_s)
        table = list(time_split.lines(self._snapshot.threads, span_s, self._thread))
        yield from ["", *table] if table else ()

    def _is_wanted(self, thread: Thread) -> bool:
        """Whether somebody waits for what it holds."""
        locks = (self._locks.get(held.lock) for held in thread.holds)
        return any(lock.waiters for lock in locks if lock is not None)

    def _waiting_group(self, group: ThreadGroup, wait: Wait, most_frames: int) -> Iterator[str]:
        """Those that wait for the same in the same place are told once, with all that they are."""
        many = len(group.threads) > 1
        who = self._many_threads(group) if many else self._thread(group.first.tid)
        longest = "up to " if many and not wait.is_lower_bound else ""
        named = self._lock(group.lock) if group.lock else f"one {wait.kind} each"
        if group.lock_name and not group.lock:
            named = f"{_with_kind_of(wait.kind, group.lock_name)}, one lock each"
        held = f", held by {self._holders(wait)}" if wait.holders else ""
        lasts = units.lasting(wait.duration_s, wait.is_lower_bound)
        yield f"  {who} for {longest}{lasts}: {named}{held}"
        yield from self._stack(wait.stack, "      ", most_frames)

    def _many_threads(self, group: ThreadGroup) -> str:
        tids = ", ".join(map(str, group.tids[:_MAX_TIDS]))
        more = len(group.tids) - _MAX_TIDS
        listed = f"{tids} and {more} more" if more > 0 else tids
        return f"{len(group.tids)} threads ({group.name}: {listed})"

    def _holders(self, wait: Wait) -> str:
        """Who holds what is waited for; of a single holder also for how long and since where."""
        named = self._threads_named(wait.holders)
        holder = self._threads.get(wait.holders[0]) if len(wait.holders) == 1 else None
        holds = holder.holds if holder else ()
        taken = next((held for held in holds if held.lock == wait.lock), None)
        if taken is None:
            return named
        since = f" for {units.duration(taken.duration_s)}" if taken.duration_s is not None else ""
        frame = self._snapshot.sites.get(taken.site)
        where = (
            f", taken at {function_name(frame)} {path_and_line(frame)}".rstrip() if frame else ""
        )
        own = holder.waiting_for if holder else None
        itself = ""
        if own is not None:
            lasts = units.lasting(own.duration_s, own.is_lower_bound)
            itself = f", itself waiting for {self._lock(own.lock)} for {lasts}"
        return f"{named}{since}{where}{itself}"

    def _stack(self, stack: int, indent: str, most: int = _MAX_FRAMES) -> Iterator[str]:
        yield from self._frames(self._snapshot.stacks.get(stack, ()), indent, most)

    def _frames(
        self, frames: Sequence[Frame], indent: str = "      ", most: int = _MAX_FRAMES
    ) -> Iterator[str]:
        for frame in frames[:most]:
            yield indent + full_location(frame) + (" (inlined)" if frame.inlined else "")
        if len(frames) > most > 1:
            yield f"{indent}and {len(frames) - most} frames more"

    def _marks(self) -> Iterator[str]:
        """What the program said of itself; the newest last, as in a log."""
        if self._snapshot.marks:
            yield from ("", "MARKS")
        for mark in reversed(self._snapshot.marks[:_MAX_MARKS]):
            yield f"  {units.duration(mark.ago_s)} ago, {self._thread(mark.tid)}: {mark.text}"

    # ---- names ----

    def _thread(self, tid: int) -> str:
        thread = self._threads.get(tid)
        return f"thread {tid} ({thread.name})" if thread and thread.name else f"thread {tid}"

    def _threads_named(self, tids: Sequence[int]) -> str:
        shown = ", ".join(self._thread(tid) for tid in tids[:3])
        return f"{shown} and {len(tids) - 3} more" if len(tids) > 3 else shown

    def _lock(self, lock: int) -> str:
        found = self._locks.get(lock)
        if found is None:
            return f"lock {lock}"
        name = lock_classes.single_name(found, self._class_of.get(lock))
        return _with_kind(found, _with_type(found, name))

    def _named(self, row: _Row) -> str:
        if not isinstance(row, LockClass):
            return self._lock(row.id)
        return f"{_with_kind(row, row.name)}, {units.counted(len(row.locks), 'lock')}"


def _with_type(lock: Lock, name: str) -> str:
    """A name that the program gives says nothing of the type."""
    return name if name.startswith(lock.type) else f"{name} ({lock.type})"


def _with_kind(row: _Row, name: str) -> str:
    return _with_kind_of(row.kind, name)


def _with_kind_of(kind: Kind, name: str) -> str:
    """A name made from the kind begins with it."""
    return name if name.startswith(kind) else f"{kind} {name}"


def _waiting(lock: _Row) -> str:
    return f"{len(lock.waiters)} waiting" if lock.waiters else ""


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Figures to the right, words to the left."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        cells = [
            cell.ljust(size) if i >= len(headings) - 2 else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells)
