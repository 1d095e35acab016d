"""The details of a lock: its holders, its waiters, its figures, and where in the code."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import islice

from locktop.collector.model import (
    CONTENTION_KINDS,
    TRAITS,
    Blame,
    Kind,
    Lock,
    WaitPart,
    WaitStack,
    behind_s,
    unheld_s,
)
from locktop.collector.recording.past_pressure import PressurePhase
from locktop.collector.render.words import activity, blame, elsewhere, unit_takers
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.misuse import misuse_sentence
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import DURATION_WIDTH
from locktop.tui.views.cells import count, duration, exact, lasting, percent
from locktop.tui.views.detail_parts import (
    blank,
    heading,
    labelled,
    last_minute,
    latest_events,
    stack_of,
)
from locktop.tui.views.histogram import histogram_lines
from locktop.tui.views.inside_lock import inside_details, pressure_details
from locktop.tui.views.lock_list import LockRow, mean_hold
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.thread_list import state_word
from locktop.tui.views.wait_matrix import wait_matrix

_MAX_WAITERS = 3
#: The library keeps no more of one lock.
_MAX_STACKS = 64


def lock_details(
    index: SnapshotIndex, lock: Lock, phases: Sequence[PressurePhase] | None = None
) -> Iterator[Line]:
    """The lines of the details panel for ``lock``; ``phases``: see ``pressure_details``."""
    yield make_line(
        (f" {lock.name}", "strong"),
        f"  {kind_word(lock.kind, lock.name)}",
        f" ({lock.type})" if lock.type else "",
        (f"  at {lock.address:#x}", "dim"),
        ("  destroyed" if lock.destroyed else "", "waiting"),
    )
    yield from _holders(index, lock)
    now = lock.holder_activity
    if now is not None and now.stack:
        if now.stack_age_s:
            yield labelled("", (f"observed asleep {duration(now.stack_age_s)} ago:", "dim"))
        yield from stack_of(index, now.stack, 0)
    yield from _waiters(index, lock)
    yield from figures(index, lock, {lock.id})
    yield from last_minute(index.snapshot.recent_lock_waits.get(lock.id, ()))
    yield from pressure_details(phases)
    yield from inside_details(index, lock)
    yield from looks_like(index, lock.id)
    yield from _misuse_lines(index, lock.id)
    yield from blamed(index, lock.blame)
    yield from histogram_lines("Waits", lock.wait_histogram, lock.wait_max_s)
    yield from histogram_lines("Timed holds", lock.hold_histogram, lock.hold_max_s)
    yield from waited_here(index, lock.wait_stacks)
    yield from wait_matrix(index, lock.id)
    events = [event for event in index.snapshot.events if event.lock == lock.id]
    yield from latest_events(index, events, show_lock=False)


def has_holder(lock: Lock) -> bool:
    """Whether the lock can have a holder.

    A semaphore or a futex has one only where threads wait for it as for a lock.
    """
    if lock.kind in CONTENTION_KINDS:
        return True
    as_lock = lock.used_as_lock or lock.kind is Kind.FUTEX
    return as_lock and bool(lock.waiters) and not lock.idle


def _holders(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    if not lock.holders and has_holder(lock):
        # Where threads wait, the next holder may have the lock already, not observed yet.
        free = not lock.waiters and index.snapshot.complete
        if lock.taken_units is not None:
            yield from _unit_takers(index, lock)
            return
        yield labelled("held by", ("nobody" if free else "not known", "dim"))
    for number, tid in enumerate(lock.holders):
        yield labelled("" if number else "held by", *_holder(index, lock, tid))
        other = index.threads_elsewhere.get(tid)
        if other is not None and (advice := elsewhere.advice(other, lock)):
            yield labelled("", (advice, "dim"))
    if lock.holders and lock.foreign_releases:
        yield labelled("", ("not certain: other threads release it too", "waiting"))


def _unit_takers(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    taken = lock.taken_units
    assert taken is not None
    what = f"all {taken.all} units" if taken.all > 1 else "the only unit"
    yield labelled("units", f"{what} taken, not posted:")
    for text in unit_takers.groups(index, lock.id):
        yield labelled("", (text, "holder"))
    for names, stack in unit_takers.stacks(index, lock.id):
        yield labelled("", (names, "holder"), " took a unit in")
        yield from stack_of(index, stack, 0)


def _holder(index: SnapshotIndex, lock: Lock, tid: int) -> Iterator[Span | str]:
    other = index.threads_elsewhere.get(tid)
    if other is not None:
        yield elsewhere.full_name(other), "holder"
        return
    yield index.thread_name(tid), "holder"
    yield f" ({tid})"
    held = index.held(tid, lock.id)
    if held is not None:
        yield " reads it" if held.shared else ""
        yield f" for {duration(held.duration_s)}" if held.duration_s is not None else ""
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
    yield f" {lasting(wait.duration_s, wait.is_lower_bound)}"


def _waiters(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """One line for any number of waiters, so that the lines below do not move."""
    if not lock.waiters:
        yield labelled("waiters", ("not known" if index.dormant else "none", "dim"))
        return
    spans: list[Span | str] = []
    for tid in lock.waiters[:_MAX_WAITERS]:
        spans += [", " if spans else f"{len(lock.waiters)}: ", (index.thread_name(tid), "strong")]
        thread = index.threads.get(tid)
        if thread is not None and thread.waiting_for is not None:
            wait = thread.waiting_for
            spans.append((f" {lasting(wait.duration_s, wait.is_lower_bound)}", "waiting"))
            spans.append(" to read" if wait.shared else "")
    if len(lock.waiters) > _MAX_WAITERS:
        spans.append((f" and {len(lock.waiters) - _MAX_WAITERS} more", "dim"))
    yield labelled("waiters", *spans)


def figures(index: SnapshotIndex, lock: LockRow, ids: Container[int]) -> Iterator[Line]:
    """The figures of one lock or of a class, whose locks are ``ids``."""
    if lock.acquisitions is None:
        yield from _estimator(lock)
        return
    share = percent(lock.contended / lock.acquisitions) if lock.acquisitions else "0%"
    failed = f", trylock failed {exact(lock.trylock_failed)}" if lock.trylock_failed else ""
    yield labelled(
        "acquired",
        f"{exact(lock.acquisitions)}, contended {exact(lock.contended)} ({share}){failed}",
    )
    signalled = TRAITS[lock.kind].signal_word
    if signalled:
        missed = f", {exact(lock.unheard)} of them while nobody waited" if lock.unheard else ""
        yield labelled(
            signalled, f"{exact(lock.signals)} times{missed}", ("  by this process", "dim")
        )
    mean = _mean_wait(index, lock, ids)
    work = f"  {duration(lock.idle_s)} of it for work" if lock.idle_s and not lock.idle else ""
    each = f" {duration(mean)} each," if mean is not None else ""
    yield labelled(
        "waited",
        f"{duration(lock.wait_s)} in all,{each} {duration(lock.wait_max_s)} at most",
        (work, "dim"),
    )
    if lock.hold_timed:
        timed = "every hold timed"
        if lock.hold_timed < lock.acquisitions:
            timed = f"from {exact(lock.hold_timed)} timed holds"
        yield labelled(
            "held",
            f"{duration(lock.hold_s)} in all, {duration(mean_hold(lock))} each, "
            f"{duration(lock.hold_max_s)} at most",
            (f"  {timed}", "dim"),
        )
    rates = lock.rates
    last = f"{count(rates.signals)} {signalled}" if signalled else f"{duration(rates.hold)} held"
    yield labelled(
        "a second",
        index.waited(
            f"{count(rates.acquisitions)} acquired, {count(rates.contended)} contended, "
            f"{duration(rates.wait)} waited, {last}"
        ),
    )


def _estimator(lock: LockRow) -> Iterator[Line]:
    """The figures of a lock of a sampled process."""
    error_s = lock.wait_error_s if isinstance(lock, Lock) else 0.0
    error = f" +-{duration(error_s)}" if error_s else ""
    yield labelled("acquired", ("the number is not known of a sampled process", "dim"))
    yield labelled(
        "waited",
        f"{duration(lock.wait_s)}{error} in all, {duration(lock.wait_max_s)} at most",
        (f"  {exact(lock.contended)} waits in samples", "dim"),
    )
    yield labelled("a second", f"{duration(lock.rates.wait)} waited")


def _mean_wait(index: SnapshotIndex, lock: LockRow, ids: Container[int]) -> float | None:
    """The mean seconds of a wait that got the lock, None where that is not known.

    ``wait_s`` includes waits that go on and waits that gave up, ``contended`` includes neither.
    """
    gave_up = [event.lock for event in index.snapshot.events if event.timed_out]
    if not lock.contended or any(id_ in ids for id_ in gave_up):
        return None
    waiters = map(index.threads.get, lock.waiters)
    waits = [thread.waiting_for for thread in waiters if thread is not None]
    going_on = sum([wait.duration_s for wait in waits if wait is not None and wait.lock in ids])
    mean = (lock.wait_s - going_on) / lock.contended
    return mean if 0 < mean <= lock.wait_max_s else None


def looks_like(index: SnapshotIndex, lock: int) -> Iterator[Line]:
    """Each contention pattern of the lock, with its evidence and advice."""
    for pattern in index.snapshot.patterns:
        if pattern.lock == lock:
            yield blank()
            yield make_line((f" {pattern.name.words.capitalize()}: ", "waiting"), pattern.evidence)
            yield make_line(f"   {pattern.advice}")


def _misuse_lines(index: SnapshotIndex, lock: int) -> Iterator[Line]:
    """Each misuse of the lock, and where that was."""
    for misuse in index.snapshot.misuses:
        if misuse.lock != lock:
            continue
        yield blank()
        sentence = misuse_sentence(misuse, index.thread_name, index.lock_name)
        yield make_line(("Against the rules: ", "waiting"), sentence)
        yield from stack_of(index, misuse.stack, 0)


def blamed(index: SnapshotIndex, because: Sequence[Blame]) -> Iterator[Line]:
    """The holders that the wait time is charged to, the longest first."""
    if not because:
        return
    yield blank()
    yield heading("Waited because of")
    seconds = behind_s(because), unheld_s(because)
    if sentence := blame.divided_seconds(*seconds, index.snapshot, DURATION_WIDTH):
        yield make_line((f"  {sentence}", "dim"))
    for entry in islice(because, 6):
        yield make_line(
            f"  {duration(entry.wait_s):>6}  ",
            (entry.holder_label or index.thread_name(entry.tid), "holder"),
            *_taken_at(index, entry.site),
            *_while_waiting(index, entry.through),
        )


def _while_waiting(index: SnapshotIndex, through: int) -> Iterator[str | tuple[str, str]]:
    if through:
        yield ", while it waited for "
        yield index.lock_name(through), "strong"


def _taken_at(index: SnapshotIndex, site: int) -> Iterator[str | tuple[str, str]]:
    if site:
        yield "  took it at "
        yield index.site(site) or "?", "where"


def waited_here(index: SnapshotIndex, stacks: Sequence[WaitStack]) -> Iterator[Line]:
    """The stacks of the waits, the longest first."""
    total = sum(stack.wait_s for stack in stacks)
    parts = [(part, waited) for waited in stacks[:_MAX_STACKS] for part in index.wait_parts(waited)]
    parts.sort(key=lambda pair: -pair[0].wait_s)
    for number, (part, waited) in enumerate(parts[:_MAX_STACKS]):
        yield blank()
        yield _part_title(number, part, waited, total, len(parts))
        if part.count is None:
            yield make_line((f"  {index.note_on_parts(waited)}", "dim"))
        yield from stack_of(index, part.stack, 0)


def _part_title(number: int, part: WaitPart, waited: WaitStack, total: float, count: int) -> Line:
    share = percent(part.wait_s / total) if total > 0 else "-"
    which = f"{number + 1} of {count}: " if count > 1 else ""
    waits = f" in {exact(part.count)} waits" if part.count else ", still in progress"
    about, waits = ("about ", "") if part.count is None else ("", waits)
    work = ", for work" if waited.idle else ""
    return heading(
        "Waited here  ", f"{which}{about}{share} of the wait, {duration(part.wait_s)}{waits}{work}"
    )
