"""A group of threads in words: what it waits for, since when, and who has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.extensions.stacks.groups import since_s
from locktop.collector.extensions.stacks.model import AllStacks, GroupState, StackGroup
from locktop.collector.model import Thread, ThreadActivity, UnobservedWait, Wait
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.text.threads import activity_words, holder_words
from locktop.collector.render.words import (
    activity,
    probable_holder,
    readers,
    units,
    unobserved_waits,
)
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import short_location
from locktop.collector.symbols.python.interpreter import waits_for_interpreter

#: Different locks of one group that get a line each.
_MAX_LOCKS = 8


class StackWords:
    """The words about one scan."""

    def __init__(self, stacks: AllStacks) -> None:
        """``stacks``: the groups of the scan."""
        self._stacks = stacks
        self._context = ReportContext(stacks.snapshot, None)
        self._unobserved = {wait.tid: wait for wait in stacks.snapshot.unobserved_waits}

    def counts(self) -> str:
        """Return how many threads do what: "3 waiting, 12 idle"."""
        by_state = dict.fromkeys(GroupState, 0)
        for group in self._stacks.groups:
            by_state[group.state] += len(group.threads)
        return ", ".join(f"{count} {state}" for state, count in by_state.items() if count)

    def what(self, group: StackGroup) -> Iterator[str]:
        """Yield what the threads of a group wait for, a line for each lock or class of locks."""
        locks: dict[object, list[tuple[Thread, Wait]]] = {}
        others: list[tuple[Thread, ThreadActivity]] = []
        unobserved: list[UnobservedWait] = []
        for thread in group.threads:
            if thread.waiting_for is not None:
                wait = thread.waiting_for
                locks.setdefault(self._lock_key(wait), []).append((thread, wait))
            elif thread.tid in self._unobserved:
                unobserved.append(self._unobserved[thread.tid])
            elif thread.now is not None:
                others.append((thread, thread.now))
        if waits_for_interpreter(group.frames):
            yield "waits for Python's GIL"
        else:
            yield from self._waits(list(locks.values()))
        if unobserved:
            durations_s = [wait.duration_s for wait in unobserved if wait.duration_s]
            since = f" for at least {units.duration(max(durations_s))}" if durations_s else ""
            verdict = unobserved_waits.verdict(unobserved[0])
            yield f"waits for {unobserved_waits.what(unobserved)}{since} ({verdict})"
        said = activity_words(others) if others else ""
        if said not in ("", group.state):
            yield said

    def since(self, group: StackGroup) -> str:
        """Return the longest wait or call of a group for a cell; "" without one."""
        first = max(group.threads, key=since_s)
        seconds = since_s(first)
        if not seconds:
            return ""
        wait = first.waiting_for or first.now
        return units.lasting(seconds, wait is not None and wait.is_lower_bound, 6)

    def awaited(self, group: StackGroup) -> str:
        """Return the lock or the call of a group, without its holder; "" if it is in none."""
        waits = [thread.waiting_for for thread in group.threads if thread.waiting_for is not None]
        if waits_for_interpreter(group.frames):
            return "Python's GIL"
        if waits:
            names = dict.fromkeys(self._lock_name([wait]) for wait in waits)
            more = f" +{len(names) - 1}" if len(names) > 1 else ""
            return next(iter(names)) + more
        unobserved = [
            self._unobserved[thread.tid]
            for thread in group.threads
            if thread.tid in self._unobserved
        ]
        if unobserved:
            return unobserved_waits.what(unobserved)
        calls = dict.fromkeys(
            (now.what if len(group.threads) == 1 else "") or f"{now.call}()"
            for thread in group.threads
            if (now := thread.now) is not None and now.call
        )
        return ", ".join(calls)

    def holders(self, group: StackGroup) -> str:
        """Return the first holder that a group waits for, and the number of others."""
        tids = dict.fromkeys(
            tid
            for thread in group.threads
            if thread.waiting_for is not None
            for tid in thread.waiting_for.holders
        )
        if not tids:
            return ""
        first = next(iter(tids))
        thread = self._context.threads.get(first)
        more = f" +{len(tids) - 1}" if len(tids) > 1 else ""
        return (thread.name if thread is not None and thread.name else str(first)) + more

    def location(self, group: StackGroup) -> str:
        """Return the innermost function of the program itself, with its line; "" for none."""
        frame = innermost_program_frame(group.frames) or innermost_own_frame(group.frames)
        return short_location(frame) if frame is not None else ""

    def name(self, group: StackGroup) -> str:
        """Return the name of a group; the id of its first thread if the threads have none."""
        return group.name or str(min(thread.tid for thread in group.threads))

    def threads(self, group: StackGroup) -> str:
        """Return all threads of a group: their ids, with names if these differ."""
        names = {thread.name for thread in group.threads}
        ordered = sorted(group.threads, key=lambda thread: thread.tid)
        if len(names) == 1 or "#" in group.name:
            return ", ".join(str(thread.tid) for thread in ordered)
        return ", ".join(f"{thread.tid} {thread.name}".rstrip() for thread in ordered)

    def _lock_key(self, wait: Wait) -> object:
        lock_class = self._context.class_of.get(wait.lock)
        return wait.lock if lock_class is None else (lock_class.kind, lock_class.name)

    def _lock_name(self, waits: Sequence[Wait]) -> str:
        lock_class = self._context.class_of.get(waits[0].lock)
        count = len({wait.lock for wait in waits})
        if lock_class is None or count == 1:
            return self._context.lock(waits[0].lock)
        return f"{name_with_kind(lock_class.kind, lock_class.name)}, {count} locks"

    def _waits(self, by_lock: Sequence[Sequence[tuple[Thread, Wait]]]) -> Iterator[str]:
        if len(by_lock) > _MAX_LOCKS:
            waits = [wait for entries in by_lock for _, wait in entries]
            kinds = ", ".join(dict.fromkeys(wait.kind.value for wait in waits))
            yield f"wait for {len(by_lock)} different locks ({kinds}){_lasting(waits)}"
            return
        for entries in by_lock:
            waits = [wait for _, wait in entries]
            first = max(waits, key=lambda wait: wait.duration_s)
            number = f"{len(entries)} " if len(by_lock) > 1 else ""
            verb = "wait" if len(entries) > 1 else "waits"
            name, is_class = self._lock_name(waits), len({wait.lock for wait in waits}) > 1
            held = self._holders_of_class(waits) if is_class else self._holder(first)
            yield f"{number}{verb} for {name}{_lasting(waits)}{held}"

    def _holders_of_class(self, waits: Sequence[Wait]) -> str:
        tids = list(dict.fromkeys(tid for wait in waits for tid in wait.holders))
        return f", held by {self._context.threads_named(tids)}" if tids else ""

    def _holder(self, wait: Wait) -> str:
        if not wait.holders:
            lock = self._context.locks.get(wait.lock)
            if lock is not None and (probable := probable_holder.tids(lock)):
                names = self._context.threads_named(probable)
                return f", {probable_holder.phrase(lock, names, self._context.snapshot.sites)}"
            units_taken = self._context.taken_units(wait.lock)
            held = readers.held_by(self._context.locks.get(wait.lock))
            return f"; {units_taken}" if units_taken else held
        lock = self._context.locks.get(wait.lock)
        doubt = " or another thread" if lock is not None and lock.foreign_releases else ""
        text = f", held by {holder_words(self._context, wait)}{doubt}"
        now = lock.holder_activity if lock is not None else None
        doing = activity.doing(now, wait.holders[0])
        return f"{text}, now {doing}" if doing else text


def _lasting(waits: Sequence[Wait]) -> str:
    longest = max(waits, key=lambda wait: wait.duration_s)
    if not longest.duration_s:
        return ""
    up_to = "up to " if len(waits) > 1 and not longest.is_lower_bound else ""
    return f" for {up_to}{units.lasting(longest.duration_s, longest.is_lower_bound)}"
