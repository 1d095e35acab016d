"""The headline of a present wait: the lock, who waits and since when, the holder, what it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from locktop.collector.model import (
    ActivityState,
    Frame,
    Lock,
    PatternName,
    Thread,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.render.words import (
    activity,
    brief_holds,
    earlier_holder,
    probable_holder,
    readers,
)
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import shortest_location
from locktop.tui.views.cells import duration, held_text, lasting
from locktop.tui.views.headline_budget import MIN_NAME, Wording, fit_wording
from locktop.tui.views.lock_list import holder_activity_span
from locktop.tui.views.shorten import location_end, lock_name_in
from locktop.tui.views.styled_line import Line, Span

#: The patterns in which threads hardly go on, the worst first. Others come after these.
RANK = {
    PatternName.STARVED_WRITER: 0,
    PatternName.PERHAPS_STARVED: 1,
    PatternName.CPU_STARVED: 2,
    PatternName.CONVOY: 3,
    PatternName.SERIALISED: 4,
}
#: For a wait that only one sample has met.
_JUST_BEGUN = ", just begun"
#: Seconds waited per second. With more, other waits for the lock came just before.
_SOME_RATE = 0.05
#: Cells of a name that leave it recognizable: with many words beside it, and with few.
_SOME_NAME, _LITTLE_NAME = 24, 14
#: Cells of a source location with many words beside it, and with few.
_LOCATION, _SHORT_LOCATION, _MIN_LOCATION = 32, 20, 14
_SHORT_ACTIVITY = {
    ActivityState.RUNNING: "running",
    ActivityState.STOPPED: "stopped",
    ActivityState.ENDED: "ended",
    ActivityState.BLOCKED: "asleep",
}

Spans = list[Span | str]


class _Room(Enum):
    """How many cells there are for what the holder does."""

    WIDE = auto()
    SOME = auto()
    LITTLE = auto()


def wait_line(index: SnapshotIndex, lock: Lock, width: int) -> Line:
    """The headline about a lock that threads wait for now.

    Args:
        index: the snapshot.
        lock: at least one thread waits for it.
        width: cells.
    """
    subject = _subject(index, lock)
    return fit_wording(subject.name, _WaitWords(index, lock, subject).wordings(), width)


class _Subject(NamedTuple):
    """The lock or the class of locks that threads wait for."""

    name: str
    waiters: Sequence[Thread]  # the longest wait first
    wait_rate: float  # seconds waited per second in the last interval


def _subject(index: SnapshotIndex, lock: Lock) -> _Subject:
    """The lock, or its class where no holder of its locks is known.

    Programs with a condition for each thread would show one waiter of many otherwise.
    """
    whole = index.class_of.get(lock.id)
    if whole is not None and not lock.holders:
        ids = set(whole.locks)
        waiters = [thread for thread in index.snapshot.threads if _lock_of_wait(thread) in ids]
        waited = {_lock_of_wait(thread) for thread in waiters}
        members = (member for member in whole.members if member.id in waited)
        if len(waited) > 1 and not any(member.holders for member in members):
            waiters.sort(key=_waited_s, reverse=True)
            return _Subject(f"{whole.name} x{len(waited)}", waiters, whole.rates.wait)
    return _Subject(index.lock_name(lock.id), index.waiters_of(lock.id), lock.rates.wait)


def _lock_of_wait(thread: Thread) -> int | None:
    """The lock that a thread waits for in contention."""
    wait = thread.waiting_for if thread.state is ThreadState.WAITING else None
    return wait.lock if wait is not None else None


def _waited_s(thread: Thread) -> float:
    wait = thread.waiting_for
    return wait.duration_s if wait is not None else 0.0


def _short_activity(now: ThreadActivity, words: str) -> str:
    """The call in which a thread sleeps, or what it does; ``words`` where nothing shorter is."""
    return f"in {now.call}" if now.call else _SHORT_ACTIVITY.get(now.doing, words)


class _WaitWords:
    """The words about the wait for a lock, in several lengths."""

    def __init__(self, index: SnapshotIndex, lock: Lock, subject: _Subject) -> None:
        self._index = index
        self._lock = lock
        self._longest: Thread = subject.waiters[0]
        self._count = len(subject.waiters)
        self._wait_rate = subject.wait_rate
        self._behind = index.behind_waiters.get(lock.id, 0)
        self._named = named = index.holder_of(lock)
        is_exact = named is not None and named.certainty is Certainty.EXACT
        self._holders = named.tids if named is not None and is_exact else ()
        self._held = index.held(self._holders[0], lock.id) if self._holders else None

    def wordings(self) -> Iterator[Wording]:
        """The wordings, the longest first."""
        pattern, wait = self._pattern(), self._wait(has_length=True)
        whole, call = self._activity(_Room.WIDE), self._activity(_Room.SOME)
        full = (*pattern, *self._full_wait(), *self._full_holder())
        yield Wording(self._begin(), (*full, *whole))
        holder = self._holder(has_length=True, location=_LOCATION)
        yield Wording((" ",), (*pattern, *wait, *holder, *whole))
        yield Wording(self._begin(), (*full, *call))
        yield Wording((" ",), (*pattern, *wait, *holder, *call), _SOME_NAME)
        holder = self._holder(has_length=False, location=_LOCATION)
        yield Wording((" ",), (*pattern, *wait, *holder, *call), _SOME_NAME)
        call = self._activity(_Room.LITTLE)
        yield Wording((" ",), (*wait, *holder, *call), _LITTLE_NAME)
        holder = self._holder(has_length=False, location=_SHORT_LOCATION)
        yield Wording((" ",), (*wait, *holder, *call), _LITTLE_NAME)
        short = self._short_holder(_SHORT_LOCATION)
        if self._readers:
            yield Wording((" ",), (*wait, *holder), _LITTLE_NAME)
            yield Wording((" ",), (*wait, *short), _LITTLE_NAME)
        elif not self._behind:
            yield Wording((" ",), (*wait, *short, *call), _LITTLE_NAME)
        if not self._holders:
            call = self._likely_words(_Room.LITTLE)
            yield Wording((" ",), (*wait, *holder, *call), _LITTLE_NAME)
            yield Wording((" ",), (*wait, *short, *call), MIN_NAME)
        wait = self._wait(has_length=False)
        yield Wording((" ",), (*wait, *holder, *call), _LITTLE_NAME)
        yield Wording((" ",), (*wait, *short, *call), MIN_NAME)
        if not self._holders:
            length = self._wait(has_length=True)
            yield Wording((" ",), (*length, *short), MIN_NAME)
            yield Wording((" ",), (*wait, *short), MIN_NAME)
        # Without the holder, what it does would read as what the waiter does.
        call = call if self._holders else []
        yield Wording((" ",), (*self._count_for_holder(), *call), MIN_NAME)
        if function := self._asleep_at(_Room.LITTLE):
            yield Wording((" ",), (*self._count_for_holder(), ",", *function), MIN_NAME)

    def _begin(self) -> tuple[Span, ...]:
        if self._behind:
            return ((f" {self._count + self._behind} threads wait behind ", "waiting"),)
        return ((f" {self._who('threads wait')} for ", "waiting"),)

    def _who(self, many_wait: str) -> str:
        if self._count > 1:
            return f"{self._count} {many_wait}"
        return f"{self._index.thread_name(self._longest.tid)} waits"

    @property
    def _since(self) -> str:
        """The length of the longest wait, "" where this scan is the first to observe it."""
        wait = self._longest.waiting_for
        return (
            lasting(wait.duration_s, wait.is_lower_bound)
            if wait is not None and wait.duration_s > 0.0
            else ""
        )

    @property
    def _lately(self) -> str:
        """How much threads waited in the last interval, where each present wait is a new one."""
        rate = self._wait_rate
        if self._index.snapshot.is_of_core:
            return ""
        return f", lately {duration(rate)} a second" if rate >= _SOME_RATE else _JUST_BEGUN

    def _full_wait(self) -> Spans:
        if not self._since:
            return [self._lately]
        is_crowd = self._count > 1 or self._behind > 0
        if is_crowd:
            return [f", the longest {self._since}"]
        return [f"{self._purpose} for {self._since}"]

    @property
    def _purpose(self) -> str:
        """The purpose of a wait for a lock that readers have; "" for other waits."""
        wait = self._longest.waiting_for
        return readers.purpose(wait) if wait is not None and self._readers else ""

    def _wait(self, *, has_length: bool) -> Spans:
        if self._behind:
            count = self._count + self._behind
            things = " threads" if has_length else ""
            return [(f": {count}{things} behind it", "waiting")]
        if not has_length:
            return [f": {self._who('wait')}"]
        return [f": {self._who('wait')}" + (f" {self._since}" if self._since else self._lately)]

    @cached_property
    def _patterns(self) -> set[PatternName]:
        patterns = self._index.snapshot.patterns
        return {pattern.name for pattern in patterns if pattern.lock == self._lock.id}

    def _pattern(self) -> Spans:
        """The pattern of the lock in which threads hardly go on."""
        ranked = [name for name in RANK if name in self._patterns]
        return [(f" ({ranked[0].words})", "waiting")] if ranked else []

    def _full_holder(self) -> Spans:
        if not self._holders:
            return self._unknown_holder("its holder is not known")
        spans: Spans = ["; held by ", self._holder_name]
        if self._held_for:
            spans.append(f" for {self._held_for}")
        site = self._index.held_site(self._holders[0], self._lock.id)
        if site:
            spans += [" at ", (site, "where")]
        return spans

    def _holder(self, *, has_length: bool, location: int) -> Spans:
        if not self._holders:
            return self._unknown_holder("holder not known")
        spans: Spans = ["; held by ", self._holder_name]
        if has_length and self._held_for:
            spans.append(f" {self._held_for}")
        if self._site is not None:
            spans += [" at ", (location_end(self._site, location), "where")]
        return spans

    def _unknown_holder(self, words: str) -> Spans:
        """Return what the scan tells about the holder; ``words`` if it tells nothing."""
        words = brief_holds.phrase(self._index, self._lock) or words
        if PatternName.CPU_STARVED in self._patterns:
            words = "mostly free"
        return self._readers or self._likely or self._earlier or [(f"; {words}", "dim")]

    @property
    def _readers(self) -> Spans:
        """How many readers have the lock, where their names are not known."""
        words = readers.phrase(self._lock)
        if words and self._probable:
            return [f"; held by {words}, probably ", (self._probable, "holder")]
        return ["; held by ", (words, "holder"), *self._likely] if words else []

    @property
    def _earlier(self) -> Spans:
        """The holder that one of the last scans named."""
        words = earlier_holder.phrase(self._index, self._lock)
        return ["; ", (words, "holder")] if words else []

    @cached_property
    def _likely(self) -> Spans:
        """The probable holder of the lock, else the only thread that does not wait."""
        if self._probable:
            return [f"; {probable_holder.PROBABLY} ", (self._probable, "holder")]
        if self._named is None:
            return []
        if self._named.function:
            return ["; likely ", (self._names, "holder")]
        return ["; only ", (self._names, "holder"), " does not wait"]

    def _likely_activity(self, room: _Room) -> Spans:
        """The activity of the probable holder, and its place in the code."""
        now = self._now
        frame = self._index.activity_frame(now)
        if frame is None:
            return self._likely_words(room)
        text = shortest_location(frame)
        if room is not _Room.WIDE:
            text = location_end(frame, _SHORT_LOCATION if room is _Room.SOME else _MIN_LOCATION)
        return [*self._likely_words(room), " at ", (text, "where")]

    def _likely_words(self, room: _Room) -> Spans:
        now = self._now
        words = activity.doing(now, now.tid) if now is not None else ""
        if now is not None and words and room is not _Room.WIDE:
            words = _short_activity(now, words)
        return [", ", (words, "text")] if words else []

    @property
    def _now(self) -> ThreadActivity | None:
        return self._named.now if self._named is not None else None

    @property
    def _names(self) -> str:
        named = self._named
        return self._index.holders(named.tids, self._lock.id) if named is not None else ""

    @property
    def _probable(self) -> str:
        is_probable = self._named is not None and self._named.certainty is Certainty.PROBABLE
        return self._names if is_probable else ""

    def _short_holder(self, location: int) -> Spans:
        """The holder, and one location: where it runs, else where it took the lock."""
        if held := readers.held_by(self._lock):
            return [held.replace(",", ";", 1)]
        if self._probable:
            return ["; probably ", (self._probable, "holder")]
        if not self._holders:
            return self._holder(has_length=False, location=location)
        taken = self._taken_at(location)
        return ["; ", self._holder_name, *(taken or [" has it"])]

    def _count_for_holder(self) -> Spans:
        """How many threads wait for the holder."""
        if not self._holders:
            return self._wait(has_length=False)
        count = self._count + self._behind
        wait = f": {count} wait for " if count > 1 else ": 1 waits for "
        return [wait, self._holder_name, *self._taken_at(_MIN_LOCATION)]

    def _taken_at(self, location: int) -> Spans:
        if self._site is None or self._running_at is not None:
            return []
        return [" at ", (location_end(self._site, location), "where")]

    @property
    def _holder_name(self) -> Span:
        return self._names, "holder"

    @property
    def _held_for(self) -> str:
        """How long the holder has the lock, "" where that is not known."""
        is_known = self._held is not None and self._held.duration_s is not None
        return held_text(self._held) if is_known else ""

    @property
    def _site(self) -> Frame | None:
        """Where the holder took the lock."""
        return self._index.snapshot.sites.get(self._held.site) if self._held is not None else None

    def _activity(self, room: _Room) -> Spans:
        """The activity of the holder; if it waits itself, the thread and the lock that it needs."""
        if not self._holders:
            return self._likely_activity(room)
        if root := self._root(room):
            return root
        now = self._lock.holder_activity
        holding = self._index.threads.get(now.tid) if now is not None else None
        if now is None or holding is None or holding.waiting_for is not None:
            return []
        words, style = holder_activity_span(self._index, self._lock)
        if not words:
            return []
        begin = ", " if room is _Room.LITTLE else ", now "
        if room is not _Room.WIDE and self._running_at is not None:
            return [f"{begin}runs ", (location_end(self._running_at, _SHORT_LOCATION), style)]
        if room is not _Room.WIDE:
            words = _short_activity(now, words)
        return [begin, (words, style), *self._asleep_at(room)]

    def _asleep_at(self, room: _Room) -> Spans:
        """Where the holder is, if it is not known where it took the lock."""
        frame = self._own_frame
        if frame is None or self._site is not None:
            return []
        is_wide = room is _Room.WIDE
        text = shortest_location(frame) if is_wide else location_end(frame, _SHORT_LOCATION)
        return [" at ", (text, "where")]

    @cached_property
    def _own_frame(self) -> Frame | None:
        """The innermost frame of the program's own code in the present stack of the holder."""
        return self._index.activity_frame(self._lock.holder_activity)

    @cached_property
    def _running_at(self) -> Frame | None:
        """Where the holder runs; None if it does not run, or where that is not known."""
        now = self._lock.holder_activity
        if now is None or now.doing is not ActivityState.RUNNING or now.stack_age_s:
            return None
        frames = self._index.stack(now.stack)
        with_line = next((frame for frame in frames if frame.line is not None), None)
        return self._own_frame or with_line or (frames[0] if frames else None)

    def _root(self, room: _Room) -> Spans:
        """The thread at the end of the chain if the holder waits itself, and the lock it wants."""
        chain = list(self._index.chain(self._holders[0]))
        spans: Spans = []
        which = ", waits for " if room is _Room.LITTLE else ", which waits for "
        if len(chain) > 1:
            spans += [which, (self._index.thread_name(chain[-1].tid), "holder")]
        last = chain[-1].waiting_for if chain else None
        if last is not None and not last.holders:
            name = self._index.lock_name(last.lock)
            short = name if room is _Room.WIDE else lock_name_in(name, _SOME_NAME)
            spans += [which, (short, "strong")]
        return spans
