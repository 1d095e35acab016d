"""The details of a lock: its holders, its waiters, its figures, and where in the code."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import islice

from locktop.collector.model import (
    Blame,
    Held,
    Kind,
    Lock,
    WaitPart,
    WaitStack,
    behind_s,
    unheld_s,
)
from locktop.collector.recording.past_pressure import PressurePhase
from locktop.collector.render.words import (
    blame,
)
from locktop.collector.render.words.lock_kind import kind_word, signal_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.units import DURATION_WIDTH
from locktop.tui.extension import screen_extensions
from locktop.tui.views.cells import (
    count,
    counted,
    duration,
    exact,
    held_text,
    lasting,
    percent,
    waited_text,
)
from locktop.tui.views.detail_parts import (
    blank,
    heading,
    labelled,
    latest_events,
    stack_of,
)
from locktop.tui.views.findings import lock_findings
from locktop.tui.views.histogram import histogram_lines
from locktop.tui.views.holder_lines import MAX_INSIDE, holder_lines, most_common, remainder
from locktop.tui.views.lock_list import LockRow, mean_hold
from locktop.tui.views.past_wait import past_wait
from locktop.tui.views.styled_line import Fold, Line, Span, make_line
from locktop.tui.views.subject_graphs import LastMinutes, lock_graphs
from locktop.tui.views.wait_matrix import wait_matrix

#: Waiters with their waits in one line.
_MAX_WAITERS = 3
#: A part of the longest time that is the same: a scan reads the two one after the other.
_SAME = 0.999
#: The library keeps no more of one lock.
_MAX_STACKS = 64


def lock_details(
    index: SnapshotIndex,
    lock: Lock,
    phases: Sequence[PressurePhase] | None = None,
    minutes: LastMinutes | None = None,
) -> Iterator[Line]:
    """The lines of the details panel for a lock.

    Args:
        index: the snapshot.
        lock: of the snapshot.
        phases: see ``pressure_details``.
        minutes: for the graphs; None: without.
    """
    yield make_line(
        (f" {lock.name}", "strong"),
        f"  {kind_word(lock.kind, lock.name)}",
        f" ({lock.type})" if lock.type else "",
        (f"  at {lock.address:#x}", "dim"),
        ("  destroyed" if lock.destroyed else "", "waiting"),
    )
    yield from list(lock_findings(index, lock)) or past_wait(index, lock)
    yield from holder_lines(index, lock)
    yield from _waiters(index, lock)
    yield from lock_graphs(minutes, {lock.id})
    yield from pressure_details(phases)
    yield from figures(index, lock, {lock.id})
    yield from _holder_stack(index, lock)
    for extension in screen_extensions():
        if extension.lock_details is not None:
            yield from extension.lock_details(index, lock)
    yield from blamed(index, lock.blame, lock.kind)
    is_waited, is_held = bool(lock.waiters), longest_hold(index, lock, {lock.id}) is not None
    yield from histogram_lines("Waits", lock.wait_histogram, lock.wait_max_s, is_waited)
    yield from histogram_lines("Timed holds", lock.hold_histogram, lock.hold_max_s, is_held)
    yield from waited_here(index, lock.wait_stacks)
    yield from wait_matrix(index, lock.id)
    events = [event for event in index.snapshot.events if event.lock == lock.id]
    yield from latest_events(index, events, show_lock=False)


def pressure_details(phases: Sequence[PressurePhase] | None) -> Iterator[Line]:
    """The pressure of the last minute in the details of a lock.

    Args:
        phases: the oldest first; () until they are known; None: nothing is kept.
    """
    if phases is not None and not phases:
        yield labelled("pressure", "-", ("  not measured yet", "dim"))
    elif phases:
        *earlier, last = phases
        peak = max([phase.share for phase in earlier], default=None)
        yield labelled(
            "pressure",
            f"waits took {percent(last.share).strip()}",
            (f" of threads' time in the last {last.duration_s:.0f}s", "dim"),
            f", up to {percent(peak).strip()} before" if peak is not None else "",
        )


def _holder_stack(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    now = lock.holder_activity
    if now is None or not now.stack:
        return
    age = f"  observed asleep {duration(now.stack_age_s)} ago" if now.stack_age_s else ""
    yield blank()
    yield heading("The holder now  ", (index.thread_name(now.tid), "holder"), (age, "dim"))
    yield from stack_of(index, now.stack, 0)


def _waiters(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """One line for any number of waiters, so that the lines below do not move."""
    if not lock.waiters:
        yield labelled("waiters", ("not known" if index.dormant else "none", "dim"))
        return
    tids = lock.waiters
    spans: list[Span] = []
    for number, tid in enumerate(tids[:_MAX_WAITERS]):
        spans += [(f"{len(tids)}: " if not number else ", ", "text"), *_waiter(index, tid)]
    if len(tids) > _MAX_WAITERS:
        spans.append((f" and {len(tids) - _MAX_WAITERS} more", "dim"))
    if behind := index.behind_waiters.get(lock.id, 0):
        spans.append((f", {behind} more behind these", "waiting"))
    spans += most_common([waits_at(index, tid) for tid in tids], "in ")
    if len(tids) == 1:
        yield labelled("waiters", *spans)
        return
    each = [
        labelled("", *_waiter(index, tid), "  ", (waits_at(index, tid), "where"))
        for tid in tids[:MAX_INSIDE]
    ]
    yield Fold(labelled("waiters"), spans, [*each, *remainder(tids)])


def _waiter(index: SnapshotIndex, tid: int) -> Iterator[Span]:
    """The name of a waiter and its wait."""
    yield index.thread_name(tid), "strong"
    thread = index.threads.get(tid)
    if thread is not None and thread.waiting_for is not None:
        wait = thread.waiting_for
        yield waited_text(wait), "waiting"
        yield " to read" if wait.shared else "", "text"


def waits_at(index: SnapshotIndex, tid: int) -> str:
    thread = index.threads.get(tid)
    frame = index.wait_frame(thread) if thread is not None else None
    return short_location(frame) if frame is not None else ""


def figures(index: SnapshotIndex, lock: LockRow, ids: Container[int]) -> Iterator[Line]:
    """The figures of one lock or of a class, whose locks are ``ids``."""
    if lock.acquisitions is None:
        yield from _estimator(lock)
        return
    # The holder that threads wait for took the lock unnoticed.
    counts = "none counted so far"
    if lock.acquisitions or not lock.waiters:
        share = percent(lock.contended / lock.acquisitions) if lock.acquisitions else "0%"
        counts = f"{exact(lock.acquisitions)}, contended {exact(lock.contended)} ({share})"
    failed = f", trylock failed {exact(lock.trylock_failed)}" if lock.trylock_failed else ""
    yield labelled(
        "acquired",
        f"{counts}{failed}",
        (f", {waiting_now(len(lock.waiters))}" if lock.waiters else "", "waiting"),
    )
    signalled = signal_word(lock.kind, lock.name)
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
        ", so far" if _has_longest_wait(index, lock, ids) else "",
        (work, "dim"),
    )
    if lock.hold_timed:
        yield _hold_figures(index, lock, lock.acquisitions, ids)
    rates = lock.rates
    last = f"{count(rates.signals)} {signalled}" if signalled else f"{duration(rates.hold)} held"
    yield labelled(
        "a second",
        index.waited(
            f"{count(rates.acquisitions)} acquired, {count(rates.contended)} contended, "
            f"{duration(rates.wait)} waited, {last}"
        ),
    )


def waiting_now(count: int) -> str:
    """How many threads wait now: their waits count as contended once they have ended."""
    return f"{exact(count)} wait{'s' * (count == 1)} now"


def _hold_figures(
    index: SnapshotIndex, lock: LockRow, acquisitions: int, ids: Container[int]
) -> Line:
    """The lengths of the timed holds, and the present hold if it is the longest of all."""
    timed, longest_s = "every hold timed", lock.hold_max_s or 0.0
    if lock.hold_timed < acquisitions:
        timed = f"from {exact(lock.hold_timed)} timed hold{'s' * (lock.hold_timed != 1)}"
    present = longest_hold(index, lock, ids)
    so_far = ""
    if present is not None and (present.duration_s or 0.0) >= _SAME * longest_s:
        so_far = ", so far"
        if present.is_lower_bound:  # the figures do not have it
            so_far = f", and the present one {held_text(present)}"
        elif lock.hold_timed < acquisitions:
            timed += " and the present one"
    return labelled(
        "held",
        f"{duration(lock.hold_s)} in all, {duration(mean_hold(lock))} each, "
        f"{duration(lock.hold_max_s)} at most{so_far}",
        (f"  {timed}", "dim"),
    )


def longest_hold(index: SnapshotIndex, lock: LockRow, ids: Container[int]) -> Held | None:
    """The present hold of one lock or of a class that has lasted the longest; None: none known."""
    holders = (index.threads.get(tid) for tid in lock.holders)
    holds = [
        held
        for thread in holders
        if thread is not None
        for held in thread.holds
        if held.lock in ids and held.duration_s is not None
    ]
    return max(holds, key=lambda held: held.duration_s or 0.0, default=None)


def _has_longest_wait(index: SnapshotIndex, lock: LockRow, ids: Container[int]) -> bool:
    """Whether the longest wait of all still goes on."""
    threads = (index.threads.get(tid) for tid in lock.waiters)
    waits = (thread.waiting_for for thread in threads if thread is not None)
    present = (wait.duration_s for wait in waits if wait is not None and wait.lock in ids)
    return max(present, default=0.0) >= _SAME * lock.wait_max_s > 0.0


def _estimator(lock: LockRow) -> Iterator[Line]:
    """The figures of a lock of a sampled process."""
    error_s = lock.wait_error_s if isinstance(lock, Lock) else 0.0
    error = f" +-{duration(error_s)}" if error_s else ""
    # A present wait may have begun before locktop watched.
    longest_s = lasting(lock.wait_max_s, lock.wait_max_is_lower_bound)
    longest = f", the longest {longest_s}" if lock.wait_max_s else ""
    yield labelled("acquired", ("the number is not known of a sampled process", "dim"))
    yield labelled(
        "waited",
        f"{duration(lock.wait_s)}{error} while locktop watched{longest}",
        (f"  {counted(lock.contended, 'wait')} in samples", "dim"),
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


def blamed(index: SnapshotIndex, because: Sequence[Blame], kind: Kind) -> Iterator[Line]:
    """The holders that the wait time is charged to, the longest first. ``kind``: of the lock."""
    if not because:
        return
    yield blank()
    yield heading("Waited because of", f"  {blame.evidence(kind)}".rstrip())
    seconds = behind_s(because), unheld_s(because)
    if sentence := blame.divided_seconds(*seconds, kind, index.snapshot, DURATION_WIDTH):
        yield make_line((f"  {sentence}", "dim"))
    for entry in islice(because, 6):
        yield make_line(
            f"  {duration(entry.wait_s):>6}  ",
            (entry.holder_label or index.thread_name(entry.tid), "holder"),
            *_site_of_holder(index, entry.site, blame.deed(kind)),
            *_while_waiting(index, entry.through),
        )


def _while_waiting(index: SnapshotIndex, through: int) -> Iterator[str | tuple[str, str]]:
    if through:
        yield ", while it waited for "
        yield index.lock_name(through), "strong"


def _site_of_holder(index: SnapshotIndex, site: int, deed: str) -> Iterator[str | tuple[str, str]]:
    if site:
        yield f"  {deed} at "
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
