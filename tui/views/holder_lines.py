"""The lines about the holders of a lock: who has it, since when, what they do, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from locktop.collector.model import CONTENTION_KINDS, Kind, Lock, ThreadActivity
from locktop.collector.render.words import (
    activity,
    brief_holds,
    earlier_holder,
    elsewhere,
    probable_holder,
    readers,
    unit_takers,
)
from locktop.collector.render.words.named_holder import Certainty, NamedHolder
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import held_text, waited_text
from locktop.tui.views.detail_parts import labelled, program_location, stack_of
from locktop.tui.views.styled_line import Fold, Line, Span
from locktop.tui.views.thread_list import state_word

#: Holders by name.
_MAX_NAMED = 3
#: Lines of threads below an open line.
MAX_INSIDE = 50


def has_holder(lock: Lock) -> bool:
    """Whether the lock can have a holder.

    A semaphore or a futex has one only where threads wait for it as for a lock.
    """
    if lock.kind in CONTENTION_KINDS:
        return True
    as_lock = lock.used_as_lock or lock.kind is Kind.FUTEX
    return as_lock and bool(lock.waiters) and not lock.idle


def holder_lines(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """One line, or one that opens if several threads hold the lock."""
    if not lock.holders:
        yield from _no_holder(index, lock)
    elif len(lock.holders) == 1:
        (tid,) = lock.holders
        yield labelled(
            "held by", *_holder(index, lock, tid), *_holder_now(index, tid, lock.holder_activity)
        )
    else:
        each = [labelled("", *_holder(index, lock, tid)) for tid in lock.holders[:MAX_INSIDE]]
        after = (*_first_names(index, lock.holders, "holder"), *_all_hold(index, lock))
        yield Fold(labelled("held by"), after, [*each, *remainder(lock.holders)])
    if lock.holders and lock.foreign_releases:
        yield labelled("", ("not certain: other threads release it too", "waiting"))


def _no_holder(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    named = index.holder_of(lock)
    if not has_holder(lock):
        if named is not None:
            yield labelled(holder_label(lock), *unproven_holder(index, lock, named))
        return
    taken = unit_takers.phrase(index, lock.id)
    if taken:
        inside = [
            line
            for names, stack in unit_takers.stacks(index, lock.id)
            for line in (
                labelled("", (names, "holder"), " took a unit in"),
                *stack_of(index, stack, 0),
            )
        ]
        yield Fold(labelled("units"), ((taken, "holder"),), inside)
        return
    held = readers.phrase(lock)
    if named is not None and not (held and named.certainty is Certainty.LIKELY):
        count = [(f"{held}, ", "holder")] if held else []
        yield labelled("held by", *count, *unproven_holder(index, lock, named))
        return
    if held:
        yield labelled("held by", (held, "holder"), (f": {readers.UNKNOWN}", "dim"))
        return
    if earlier := earlier_holder.phrase(index, lock):
        yield labelled(holder_label(lock), ("not known; ", "dim"), (earlier, "holder"))
        return
    if brief := brief_holds.phrase(index, lock):
        yield labelled("held by", (f"not known: {brief}", "dim"))
        return
    # Where threads wait, the next holder may have the lock already, not observed yet.
    free = not lock.waiters and index.snapshot.complete
    yield labelled("held by", ("nobody" if free else "not known", "dim"))


def holder_label(lock: Lock) -> str:
    """The label before the thread that others wait for."""
    return "held by" if has_holder(lock) else "signaller"


def unproven_holder(index: SnapshotIndex, lock: Lock, named: NamedHolder) -> Iterator[Span | str]:
    """A holder that the lock does not name: why this thread, what it does, and where."""
    yield named.adverb
    yield index.holders(named.tids, lock.id), "holder"
    if named.certainty is Certainty.LIKELY:
        yield f", {named.why}"
    elif why := probable_holder.evidence(lock, index.snapshot.sites):
        yield f", {why}"
    if now := activity.doing(named.now, named.tids[0]):
        yield f"; now {now}", "dim"
    yield from _holder_now(index, named.tids[0], named.now)


def _first_names(index: SnapshotIndex, tids: Sequence[int], style: str) -> Iterator[Span]:
    """The number of threads and the first names: "8: reader-0, reader-1 and 6 more"."""
    yield f"{len(tids)}: ", "text"
    for number, tid in enumerate(tids[:_MAX_NAMED]):
        yield ", " * (number > 0), "text"
        yield index.thread_name(tid), style
    if len(tids) > _MAX_NAMED:
        yield f" and {len(tids) - _MAX_NAMED} more", "dim"


def _all_hold(index: SnapshotIndex, lock: Lock) -> Iterator[Span]:
    """How all holders hold the lock: whether they read, for how long, where most took it."""
    holds = [held for held in (index.held(tid, lock.id) for tid in lock.holders) if held]
    if holds and all(held.shared for held in holds):
        yield " read it", "text"
    longest = max(holds, key=lambda held: held.duration_s or 0.0, default=None)
    if longest is not None and longest.duration_s:
        up_to = "" if longest.is_lower_bound else "up to "
        yield f" for {up_to}{held_text(longest)}", "text"
    yield from most_common([index.site(held.site) for held in holds], "taken at ")


def most_common(locations: Sequence[str], before: str) -> Iterator[Span]:
    """The source location that most of some threads have in common, else that of the first."""
    ranked = Counter(filter(None, locations)).most_common(1)
    if ranked:
        ((location, times),) = ranked
        yield f", the first {before}" if times == 1 < len(locations) else f", {before}", "text"
        yield location, "where"
        if 1 < times < len(locations):
            yield f" ({times} of {len(locations)})", "dim"


def _holder(index: SnapshotIndex, lock: Lock, tid: int) -> Iterator[Span | str]:
    other = index.threads_elsewhere.get(tid)
    if other is not None:
        yield elsewhere.full_name(other), "holder"
        return
    name = index.thread_name(tid)
    yield name, "holder"
    yield "" if f":{name}".endswith(f":{tid}") else f" ({tid})"
    held = index.held(tid, lock.id)
    if held is not None:
        yield " reads it" if held.shared else ""
        yield f" for {held_text(held)}" if held.duration_s is not None else ""
        site = index.site(held.site)
        yield ", taken at " if site else ""
        yield site, "where"
    thread = index.threads.get(tid)
    if thread is None:
        return
    wait = thread.waiting_for
    if wait is None:
        now = activity.doing(lock.holder_activity, tid) or state_word(index, thread)
        yield (f"; now {now}", "dim")
        return
    yield "; now waits for "
    yield index.lock_name(wait.lock), "waiting"
    yield waited_text(wait)


def _holder_now(index: SnapshotIndex, tid: int, now: ThreadActivity | None) -> Iterator[Span]:
    """Where the code of a holder is now, if that is known."""
    if now is not None and now.tid == tid and now.stack and not now.stack_age_s:
        top = program_location(index, now.stack)
        if top:
            yield ", at ", "dim"
            yield top, "where"


def remainder(tids: Sequence[int]) -> Iterator[Line]:
    if len(tids) > MAX_INSIDE:
        yield labelled("", (f"and {len(tids) - MAX_INSIDE} more", "dim"))
