"""The deadlock banner: which threads wait for which locks, since when, and where.

The banner says so in words, not only in colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.geometry import Size

from locktop.collector.model import BlockReason, Deadlock, DeadlockEdge, Frame
from locktop.collector.render.words import elsewhere, hang, unit_takers
from locktop.collector.render.words.deadlock import SHORTLY, who_for_whom
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location, shortest_location
from locktop.collector.render.words.verdict import long_hang
from locktop.collector.render.words.wrap import wrapped
from locktop.tui.views.cells import counted, lasting
from locktop.tui.views.headline import headline, waiting_line
from locktop.tui.views.past_alerts import NO_ALERTS, PastAlerts
from locktop.tui.views.shorten import location_end, lock_name_in
from locktop.tui.views.styled_line import Line, cut, make_line

#: A name in fewer cells cannot be recognized.
_MIN_NAME = 8
#: Cells of a location that can be recognized.
_MIN_LOCATION = 14
#: Cells of two locations.
_FOR_TWO = 2 * _MIN_LOCATION + len(" ()")
#: Lines about the units of a semaphore.
_MAX_TAKEN = 2


def top_lines(
    index: SnapshotIndex,
    stale: str,
    size: Size,
    past: PastAlerts = NO_ALERTS,
    reason: str = "",
) -> tuple[Line, ...]:
    """The lines below the first one: the deadlock, or what matters most.

    Args:
        index: the snapshot.
        stale: the reason that no newer snapshot comes; "" while they come.
        size: the cells of the screen.
        past: the alerts that a calm moment tells of.
        reason: the text of the alert or mark that the user jumped to; "" for none.
    """
    max_lines = max(3, size.height // 5)
    lines = banner(index, max_lines, size.width) or (headline(index, size.width, past),)
    if index.snapshot.is_of_core:
        about = next(iter(index.snapshot.notes), "")
        lines = (cut(make_line(" ", (" CORE ", "flag"), f" {about}"), size.width), *lines)
    if reason:
        lines = (cut(make_line((f" {reason}", "waiting")), size.width), *lines)
    if not stale:
        return lines
    is_empty = not index.snapshot.process.pid
    return (waiting_line(stale, size.width), *(() if is_empty else lines))


#: Fewer words before a holder than SHORTLY has.
_NARROW = {BlockReason.HELD: "of", BlockReason.PROBABLY_HELD: "probably of"}


def banner(index: SnapshotIndex, max_lines: int, width: int) -> tuple[Line, ...]:
    """The lines of the banner; none without a deadlock or a hang.

    Args:
        index: the snapshot.
        max_lines: the number of lines that the banner may have.
        width: the cells of a line.
    """
    deadlocks = index.deadlocks
    taken = _taken_units(index, width)
    if not deadlocks:
        hang_lines = _hang(index, max_lines - len(taken), width)
        return (*hang_lines, *taken) if hang_lines else ()
    lines = [cut(_title(index, deadlocks), width), *taken]
    # A thread that waits for a semaphore and took a unit of it is named among the takers.
    edges = [
        edge
        for deadlock in deadlocks
        for edge in deadlock.cycle
        if edge.tid != edge.held_by or edge.waits_for not in index.taken_units
    ]
    room = max_lines - len(lines)
    visible = edges if len(edges) <= room else edges[: room - 1]
    lines += _edges(index, visible, width)
    if len(visible) < len(edges):
        lines.append(make_line((f"   and {len(edges) - len(visible)} more: press d", "alert")))
    return tuple(lines)


def _taken_units(index: SnapshotIndex, width: int) -> tuple[Line, ...]:
    """The lines of the first semaphores whose units are all taken; one line each if several."""
    lines: list[Line] = []
    semaphores = list(index.taken_units)[:_MAX_TAKEN]
    for lock_id in semaphores:
        start = f"    {index.lock_name(lock_id)}: "
        text = start + unit_takers.phrase(index, lock_id, width - cell_len(start))
        parts = wrapped(text, width)
        if len(semaphores) > 1:
            parts = [text]
        elif len(parts) > _MAX_TAKEN:  # the last one gets the rest, and an ellipsis
            parts = [*parts[: _MAX_TAKEN - 1], " ".join(parts[_MAX_TAKEN - 1 :])]
        lines += [cut(make_line((part, "alert")), width) for part in parts]
    return tuple(lines)


def _hang(index: SnapshotIndex, max_lines: int, width: int) -> tuple[Line, ...]:
    """The lines of a hang: a title, and a line for each source location of its threads."""
    hung = long_hang(index.snapshot)
    if hung is None:
        return ()
    word = "HANG" if hung.certain else "POSSIBLE HANG"
    unless = f", unless {hung.doubt}" if hung.doubt else ""
    # The condition is never cut: without it the title would claim too much. Its second line is
    # beyond the banner's lines, so that the groups stay.
    title = wrapped(f" !! {word}: {hang.whom(index.snapshot)}{unless}", width)
    groups = hang.groups(index.snapshot)
    room = max(1, min(max_lines - 1, max_lines + 1 - len(title)))
    visible = groups if len(groups) <= room else groups[: room - 1]
    lines = [*title, *(_group_line(group, width) for group in visible)]
    if len(visible) < len(groups):
        lines.append(f"    and {counted(len(groups) - len(visible), 'more group')} of threads")
    return tuple(cut(make_line((line, "alert")), width) for line in lines)


def _group_line(group: hang.HungThreads, width: int) -> str:
    """Threads of a hang, and where they wait: the line of the source is never cut."""
    text = f"    {hang.part(group)}"
    if cell_len(text) <= width or group.frame is None or not group.where:
        return text
    start = f"    {hang.wait_words(group)}, at "
    return start + location_end(group.frame, width - cell_len(start))


def no_deadlock(index: SnapshotIndex) -> str:
    """The message that there is no deadlock, with what limits that knowledge."""
    snapshot = index.snapshot
    if long_hang(snapshot) is not None:
        return f"No cycle of locks is found, but {hang.whom(snapshot)}."
    waits = [thread.waiting_for for thread in index.waiting]
    unheld = [wait.lock for wait in waits if wait is not None and not wait.holders]
    probable = {lock.id for lock in snapshot.locks if lock.holders_probable}
    hidden = sum(lock not in probable for lock in unheld)
    hidden += sum(wait.idle is False for wait in snapshot.unobserved_waits)
    if hidden:
        several = hidden > 1
        many = f"{hidden} threads wait" if several else "a thread waits"
        holders, verb = ("holders", "are") if several else ("holder", "is")
        return f"No deadlock is found, but the {holders} of what {many} for {verb} not known."
    if unheld:
        return "No deadlock is found. The holder of a lock is only probable."
    if snapshot.threads_elsewhere:
        others = elsewhere.holder_names(snapshot)
        return f"No deadlock is found. Held by another process: {others}."
    if snapshot.is_sampled:
        return "No deadlock is found. Potential deadlocks of a sampled process are not known."
    if index.dormant or not snapshot.complete:
        return "No deadlock is found, but not every held lock is known: see the notes (?)."
    return "There is no deadlock. No potential deadlock is found."


def _title(index: SnapshotIndex, deadlocks: Sequence[Deadlock]) -> Line:
    """How many deadlocks there are, and the age of the oldest.

    Where one is certain, only certain deadlocks count.
    """
    certain = [deadlock for deadlock in deadlocks if deadlock.certain]
    counted = certain or deadlocks
    count, whom = who_for_whom(counted)
    if semaphores := index.semaphores_without_units(counted):
        count = sum(len(lock.waiters) for lock in semaphores)
        whom = " or ".join(index.lock_name(lock.id) for lock in semaphores)
    wait = f"{count} threads wait" if count > 1 else "1 thread waits"
    word = "DEADLOCK" if certain else "POSSIBLE DEADLOCK"
    hung = index.snapshot.hang
    if not certain and hung is not None and hung.certain:
        word = f"HANG, {word}"
    what = f"{len(counted)} {word}S, the oldest" if len(counted) > 1 else word
    oldest = max(counted, key=lambda deadlock: deadlock.since_s)
    since = (
        ""
        if index.snapshot.is_of_core
        else f" for {lasting(oldest.since_s, oldest.is_lower_bound)}"
    )
    return make_line((f" !! {what}{since}: {wait} for {whom}   d: their stacks ", "alert"))


def _edges(index: SnapshotIndex, edges: Sequence[DeadlockEdge], width: int) -> list[Line]:
    """A line for each edge, all in one wording: the longest that fits."""
    for format_location in (short_location, shortest_location):
        texts = [_full_text(index, edge, format_location) for edge in edges]
        if all(cell_len(text) <= width for text in texts):
            return [make_line((text, "alert")) for text in texts]
    return [_brief_line(index, edge, width) for edge in edges]


def _full_text(
    index: SnapshotIndex, edge: DeadlockEdge, format_location: Callable[[Frame], str]
) -> str:
    thread, lock = index.thread_name(edge.tid), index.lock_name(edge.waits_for)
    holder = _holder(index, edge, SHORTLY[edge.reason])
    frame, site = _waits_at(index, edge), index.snapshot.sites.get(edge.site)
    site_text = f"; at {format_location(frame)}" if frame else ""
    taken = f", taken at {format_location(site)}" if site else ""
    return f"    {thread} waits for {lock}, {holder}{site_text}{taken}"


def _brief_line(index: SnapshotIndex, edge: DeadlockEdge, width: int) -> Line:
    """Thread, lock and holder always, then as much of both source locations as fits."""
    thread, lock = index.thread_name(edge.tid), index.lock_name(edge.waits_for)
    holder = _holder(index, edge, _NARROW.get(edge.reason) or SHORTLY[edge.reason])
    frame, site = _waits_at(index, edge), index.snapshot.sites.get(edge.site)
    room = width - cell_len(f" {thread} wants  {holder}")
    # A long name leaves half of the room to the locations, and no less than a line needs.
    wanted = cell_len(_locations(frame, site, width))
    least = min(wanted, len(", at ") + _MIN_LOCATION)
    room = max(_MIN_NAME, min(max(room // 2, room - wanted), room - least))
    text = f" {thread} wants {lock_name_in(lock, room)} {holder}"
    line = make_line((text + _locations(frame, site, width - cell_len(text)), "alert"))
    return cut(line, width)


def _holder(index: SnapshotIndex, edge: DeadlockEdge, how: str) -> str:
    return f"{how} {index.thread_name(edge.held_by) if edge.held_by else 'anybody'}"


def _waits_at(index: SnapshotIndex, edge: DeadlockEdge) -> Frame | None:
    """Where the thread waits: from its stack, else the call site of the wait."""
    waiter = index.threads.get(edge.tid)
    return index.top_frame(edge.stack) or (index.wait_frame(waiter) if waiter else None)


def _locations(frame: Frame | None, site: Frame | None, room: int) -> str:
    """Where the thread waits, and where the lock was taken if there is room for it.

    A location is cut at its begin, for its line tells most.
    """
    if frame is None or room < len(", at ") + _MIN_NAME:
        return ""
    room -= len(", at ")
    taken_at = cell_len(shortest_location(site)) if site is not None else 0
    least = room if room < _FOR_TWO else (room + 1) // 2
    waited_at = location_end(frame, max(room - len(" ()") - taken_at, least))
    rest = room - cell_len(waited_at) - len(" ()")
    if site is None or rest < min(_MIN_LOCATION, taken_at):
        return f", at {waited_at}"
    return f", at {waited_at} ({location_end(site, rest)})"
