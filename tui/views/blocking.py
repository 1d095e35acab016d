"""The columns of the blocking tree. A row is a root, a thread, or threads that wait alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

from locktop.collector.model import BlockingRoot, BlockingWaiter, Frame, Held, RootKind
from locktop.collector.render.words import (
    activity,
    blocking,
    brief_holds,
    earlier_holder,
    likely_holder,
    probable_holder,
    readers,
    unit_takers,
)
from locktop.collector.render.words.blocking import BlockingRow
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.tui.views.cells import counted, duration, fit_right, held_text, lasting
from locktop.tui.views.detail_parts import labelled
from locktop.tui.views.lock_list import fit_lock_name, holder_activity_span
from locktop.tui.views.shorten import fit_location, fit_middle
from locktop.tui.views.styled_line import FOLD_MARKS, Line, Span, make_line
from locktop.tui.views.table import Cell, Column
from locktop.tui.views.thread_list import state_word

_AT_WIDTH = 24
#: From this width the columns say what the line below a root says on a narrower screen.
WIDE = 140
#: No deeper indentation, so that a name always has room.
_DEEPEST = 10
_INDENT = "  "
_TREE = re.compile(r"^( *)(.*)$", re.DOTALL)


def mark(index: SnapshotIndex, row: BlockingRow) -> Cell:
    """The character before a row: ! for a deadlock, * for a root."""
    tids = row.root.tids if row.root is not None else [waiter.tid for waiter in row.waiters]
    if not index.stuck_threads.isdisjoint(tids):
        return "!", "stuck"
    return ("*", "waiting") if row.root is not None or row.roots else (" ", "text")


def columns(index: SnapshotIndex) -> tuple[Column[BlockingRow], ...]:
    """All columns from the left; a narrow screen leaves some out."""
    return (
        Column("HOLDER, AND ITS WAITERS", 24, lambda row: _name(index, row), _fit, 3, 36),
        Column("TID", 7, _tid, fit_right, from_width=100),
        Column("LOCK", 14, lambda row: _lock(index, row), fit_lock_name, grow=3, limit=36),
        Column("KIND", 6, lambda row: _kind(index, row), from_width=90),
        Column("FOR", 6, lambda row: _since(index, row), fit_right),
        Column("BEHIND", 6, _behind, fit_right),
        Column("WAIT/s", 6, _wait, fit_right),
        Column("ALSO HELD BY", 12, lambda row: _others(index, row), fit_middle, 1, 24),
        Column("NOW", 20, lambda row: _now(index, row), grow=4, limit=44, from_width=WIDE),
        Column("AT", _AT_WIDTH, lambda row: _location_cell(index, row), fit_location, 4, 0, WIDE),
    )


def about_line(index: SnapshotIndex, root: BlockingRoot) -> Line:
    """The line below a root on a narrow screen: since when and where it holds the lock, and now."""
    held = _longest_held(index, root)
    spans: list[Span | str] = ["    "]
    if held is not None and held.duration_s is not None:
        spans.append(f"held {held_text(held)}")
    if held is not None and held.site:
        spans += [" at " if len(spans) > 1 else "taken at ", (index.site(held.site), "where")]
    words, style = now_span(index, root)
    if words and root.kind is RootKind.LOCK:  # the words are about its holder
        spans.append((words, style))
    elif words:
        spans.append("; now " if len(spans) > 1 else "now ")
        if (frame := _activity_frame(index, root)) is not None:
            spans += ["at ", (short_location(frame), "where"), ", "]
        spans.append((words, style))
    return make_line(*spans)


def behind_lines(index: SnapshotIndex, row: BlockingRow) -> Iterator[Line]:
    """The first lines of the details of a row: how much waits behind it, and the longest wait."""
    behind = row.root.behind if row.root is not None else None
    if behind is None and len(row.waiters) == 1:
        behind = row.waiters[0].behind
    if behind is None or not behind.threads:
        return
    waiting = index.threads.get(behind.longest)  # the row may be of another moment
    wait = waiting.waiting_for if waiting is not None else None
    longest = lasting(wait.duration_s, wait.is_lower_bound) if wait is not None else ""
    yield labelled(
        "behind",
        (blocking.behind_words(behind), "waiting"),
        f"; longest {longest} ",
        (index.thread_name(behind.longest), "strong"),
    )


def cycle_lines(index: SnapshotIndex, root: BlockingRoot) -> Iterator[Line]:
    """The details of a cycle: which thread waits for which."""
    yield make_line((" Threads that wait for each other", "stuck"))
    yield from behind_lines(index, BlockingRow(root.key, 0, root))
    for tid in root.tids:
        waiter = index.blocking.waiters.get(tid)
        if waiter is None:  # the cycle was chosen at another moment
            continue
        yield make_line(
            "   ",
            (index.thread_name(tid), "strong"),
            " waits for ",
            (index.lock_name(waiter.lock), "waiting"),
            ", held by ",
            ("itself" if waiter.holder == tid else index.thread_name(waiter.holder), "holder"),
        )


def now_span(index: SnapshotIndex, root: BlockingRoot) -> Span:
    """The activity of a root, in a few words; "" where that is not known."""
    if root.kind is RootKind.LOCK:
        taken = unit_takers.phrase(index, root.lock)
        return (taken, "holder") if taken else (_unknown_holder(index, root), "dim")
    if root.kind is RootKind.CYCLE:
        many = len(root.tids) > 1
        return ("wait for each other" if many else "waits for itself"), "stuck"
    (tid,) = root.tids
    now = blocking.activity_of(root, index.locks, index.threads)
    for id_ in root.locks:
        lock = index.locks.get(id_)
        if lock is not None and now is not None and lock.holder_activity is now:
            return holder_activity_span(index, lock)
    if now is not None:
        return activity.doing(now, tid), "text"
    thread = index.threads.get(tid)
    if thread is None:
        return "", "dim"
    if thread.waiting_for is not None:
        return f"waits for {index.lock_name(thread.waiting_for.lock)}", "text"
    return state_word(index, thread), "text"


def _unknown_holder(index: SnapshotIndex, root: BlockingRoot) -> str:
    lock = index.locks.get(root.lock)
    named = index.holder_of(lock) if lock is not None else None
    if lock is not None and named is not None and named.certainty is Certainty.PROBABLE:
        names = index.holders(named.tids, lock.id)
        return probable_holder.phrase(lock, names, index.snapshot.sites)
    likely = index.threads.get(named.tids[0]) if named is not None else None
    if held := readers.phrase(lock):
        return f"held by {held}"
    if likely is None or named is None:
        earlier = earlier_holder.phrase(index, lock) if lock is not None else ""
        if earlier:
            return f"its holder is not known; {earlier}"
        brief = brief_holds.phrase(index, lock) if lock is not None else ""
        return brief or "its holder is not known"
    name = index.thread_name(likely.tid)
    return f"holder not known{likely_holder.phrase(likely, name, named.why)}"


def root_name(index: SnapshotIndex, root: BlockingRoot) -> str:
    """The name of a root: that of its thread, of the lock, or of the threads of a cycle."""
    if root.kind is RootKind.LOCK:
        return index.lock_name(root.lock)
    first = index.thread_name(root.tids[0])
    if root.kind is RootKind.HOLDER or len(root.tids) == 1:
        return first
    if len(root.tids) == 2:
        return f"{first}, {index.thread_name(root.tids[1])}"
    return f"{first} +{len(root.tids) - 1}"


def _name(index: SnapshotIndex, row: BlockingRow) -> Cell:
    if row.left_out:
        return f"{_indent(row)}{_INDENT}and {row.left_out} more", "dim"
    before = _indent(row) + (_INDENT if row.is_open is None else FOLD_MARKS[row.is_open])
    if row.root is not None:
        style = "stuck" if row.root.kind is RootKind.CYCLE else "holder"
        return before + root_name(index, row.root), style
    if row.roots:
        return f"{before}{row.name}  {len(row.roots)} locks", "holder"
    if row.name:
        return f"{before}{row.name}  {counted(len(row.waiters), 'thread')}", "strong"
    tid = row.waiters[0].tid
    return before + index.thread_name(tid), "stuck" if tid in index.stuck_threads else "strong"


def _indent(row: BlockingRow) -> str:
    return _INDENT * min(row.depth, _DEEPEST)


def _fit(text: str, width: int) -> str:
    """The name in ``width`` cells; the indentation and the number of threads stay whole."""
    match = _TREE.match(text)
    blanks, name = match.groups() if match is not None else ("", text)
    if cell_len(text) <= width:
        return fit_middle(text, width)
    return blanks + fit_lock_name(name, max(0, width - len(blanks)))


def _tid(row: BlockingRow) -> Cell:
    tids = row.root.tids if row.root is not None else [waiter.tid for waiter in row.waiters]
    return (str(tids[0]) if len(tids) == 1 else ""), "text"


def _lock(index: SnapshotIndex, row: BlockingRow) -> Cell:
    if row.root is not None:
        more = f" +{len(row.root.locks) - 1}" if len(row.root.locks) > 1 else ""
        return index.lock_name(row.root.lock) + more, "strong"
    if row.roots:
        return row.name, "strong"
    return (index.lock_name(row.waiters[0].lock) if row.waiters else ""), "waiting"


def _kind(index: SnapshotIndex, row: BlockingRow) -> Cell:
    id_ = row.root.lock if row.root is not None else row.waiters[0].lock if row.waiters else 0
    lock = index.locks.get(id_)
    return (kind_word(lock.kind, lock.name) if lock is not None else ""), "text"


def _since(index: SnapshotIndex, row: BlockingRow) -> Cell:
    """How long a root holds the lock, or a thread waits."""
    if row.root is not None:
        held = _longest_held(index, row.root)
        return held_text(held), "text"
    threads = [index.threads[waiter.tid] for waiter in row.waiters if waiter.tid in index.threads]
    waits = [thread.waiting_for for thread in threads]
    longest = max(
        [wait for wait in waits if wait is not None],
        key=lambda wait: wait.duration_s,
        default=None,
    )
    text = lasting(longest.duration_s, longest.is_lower_bound) if longest is not None else ""
    return text, "text"


def _behind(row: BlockingRow) -> Cell:
    if row.roots:
        return str(sum(root.behind.threads for root in row.roots)), "waiting"
    if row.left_out or row.name:
        return "", "dim"
    threads = row.root.behind.threads if row.root else row.waiters[0].behind.threads
    return (str(threads), "waiting") if threads else ("-", "dim")


def _wait(row: BlockingRow) -> Cell:
    if row.roots:
        return duration(sum(root.behind.wait for root in row.roots)), "waiting"
    if row.left_out or row.name:
        return "", "dim"
    behind = row.root.behind if row.root else row.waiters[0].behind
    return (duration(behind.wait), "waiting") if behind.threads else ("-", "dim")


def _others(index: SnapshotIndex, row: BlockingRow) -> Cell:
    others = _common_others(row.waiters)
    if not others:
        return "", "text"
    more = f" +{len(others) - 1}" if len(others) > 1 else ""
    return index.thread_name(others[0]) + more, "holder"


def _common_others(waiters: tuple[BlockingWaiter, ...]) -> tuple[int, ...]:
    return waiters[0].others if waiters else ()


def _now(index: SnapshotIndex, row: BlockingRow) -> Cell:
    root = row.root or (row.roots[0] if row.roots else None)
    return now_span(index, root) if root is not None else ("", "text")


def _location_cell(index: SnapshotIndex, row: BlockingRow) -> Cell:
    """Where a root took the lock, or is now, or where a thread waits."""
    if row.root is not None:
        held = _longest_held(index, row.root)
        frame = index.snapshot.sites.get(held.site) if held is not None else None
        frame = frame or _activity_frame(index, row.root)
    else:
        waiting = index.threads.get(row.waiters[0].tid) if row.waiters else None
        frame = index.wait_frame(waiting) if waiting is not None else None
    return (short_location(frame) if frame is not None else ""), "where"


def _activity_frame(index: SnapshotIndex, root: BlockingRoot) -> Frame | None:
    """Where a root is that took its lock at an unknown place, None if that is not known either."""
    held = _longest_held(index, root)
    if held is None or held.site:
        return None
    return index.activity_frame(blocking.activity_of(root, index.locks, index.threads))


def _longest_held(index: SnapshotIndex, root: BlockingRoot) -> Held | None:
    """How the thread at a root holds its lock with most time behind."""
    return index.held(root.tids[0], root.lock) if root.kind is RootKind.HOLDER else None
