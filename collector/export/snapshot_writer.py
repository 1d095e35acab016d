"""A snapshot as one JSON object (msgpack: the same): times in seconds, addresses as hex strings.

Keys may be added; those that are there keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from locktop.collector.analysis import blame_chains, lock_classes, thread_groups
from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.analysis.thread_groups import ThreadGroup
from locktop.collector.export import activity_json, not_measured
from locktop.collector.model import (
    Counters,
    Deadlock,
    Event,
    Frame,
    Held,
    Lock,
    Misuse,
    OrderCycle,
    Pattern,
    Snapshot,
    Switches,
    Thread,
    TimeSplit,
    UnobservedWait,
    Wait,
    WaitStack,
)

FORMAT = "locktop.snapshot"
VERSION = 1
#: Of the locks of a class.
_MAX_IDS = 64


def document(snapshot: Snapshot, before: Snapshot | None = None) -> dict[str, Any]:
    """Return the object. With ``before``, an earlier look at the same process, each thread, lock
    and class of locks has "interval": the part of its figures that fell between the two.

    "lock_classes" are the locks that have one name (analysis/lock_classes.py), each with the sums
    of their figures and how many they are ("instances", "destroyed"); "locks" has the ids of those
    with most wait, 64 at most. A lock that is in a class has that one's name as its "class"; two
    classes of one name are of different kinds.

    Of a process that is sampled what cannot be known is null (not_known.py).

    "time" is where the wall clock of a thread went in the last interval (analysis/time_split.py):
    shares that add up to 1; null at the first look. "unknown" names those of which not all is
    known.

    "unseen" is what is known of "unseen_waiters", of the first 32 of them: where the library does
    not see a wait. "idle" is null where no rule tells.

    "thread_groups" are the threads that do the same (analysis/thread_groups.py), each thread in
    one; "lock" is null where they wait for none, or for several of the class "lock_name".
    """
    taken_before = _Before(before) if before is not None else None
    classes = lock_classes.find(snapshot.locks)
    class_of = lock_classes.by_lock(classes)
    by_id = {lock.id: lock for lock in snapshot.locks}
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "taken_at": snapshot.taken_at,
        "host": snapshot.host,
        "source": snapshot.source,
        "duration_s": snapshot.duration_s - (before.duration_s if before else 0.0),
        "lost_events": snapshot.lost_events,
        "ended": snapshot.ended,
        "level": snapshot.level,
        "complete": snapshot.complete,
        "locks_left_out": snapshot.locks_left_out,
        "unseen_waiters": list(snapshot.unobserved_waiters),
        "unseen": [_unseen(wait) for wait in snapshot.unobserved_waits],
        "notes": list(snapshot.notes),
        "process": _process(snapshot),
        "threads": [
            _thread(thread, snapshot.why.get(thread.tid, ""), taken_before)
            for thread in snapshot.threads
        ],
        "thread_groups": [
            _thread_group(group) for group in thread_groups.find(snapshot.threads, by_id, class_of)
        ],
        "locks": [
            _lock(lock, class_of.get(lock.id), taken_before, by_id) for lock in snapshot.locks
        ],
        "lock_classes": [_lock_class(found, by_id, taken_before) for found in classes],
        "deadlocks": [_deadlock(found) for found in snapshot.deadlocks],
        "lock_order": [_order(cycle) for cycle in snapshot.lock_order],
        "lock_order_suppressed": snapshot.lock_order_suppressed,
        "lock_order_unproven": snapshot.lock_order_unproven,
        "stacks": {str(n): [_frame(f) for f in frames] for n, frames in snapshot.stacks.items()},
        "sites": {hex(address): _frame(frame) for address, frame in snapshot.sites.items()},
        "events": [_event(event) for event in snapshot.events],
        "marks": [
            {"tid": mark.tid, "ago_s": mark.ago_s, "text": mark.text} for mark in snapshot.marks
        ],
        "misuses": [_misuse(misuse) for misuse in snapshot.misuses],
        "patterns": [_pattern(pattern) for pattern in snapshot.patterns],
    }
    return not_measured.marked(whole) if snapshot.is_sampled else whole


class _Before:
    """The earlier look, by id."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.threads = {thread.tid: thread for thread in snapshot.threads}
        self.locks = {lock.id: lock for lock in snapshot.locks}


def _process(snapshot: Snapshot) -> dict[str, Any]:
    process = snapshot.process
    return {
        "pid": process.pid,
        "comm": process.comm,
        "cmdline": list(process.cmdline),
        "exe": process.exe,
        "started_at": process.started_at,
        "cpu_share": process.cpu_share,
        "rss_bytes": process.rss_bytes,
        "cpus": process.cpus,
    }


def _thread(thread: Thread, why: str, before: _Before | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "tid": thread.tid,
        "name": thread.name,
        "alive": thread.alive,
        "state": str(thread.state),
        "waiting_for": _wait(thread.waiting_for, why) if thread.waiting_for else None,
        "holds": [held.lock for held in thread.holds],
        "held": [_held(held) for held in thread.holds],
        "wait_s": _by_kind(thread.wait_s),
        "cpu_s": thread.cpu_s,
        "acquisitions": thread.acquisitions,
        "contended": thread.contended,
        "wait_share": thread.wait_share,
        "idle_share": thread.idle_share,
        "cpu_share": thread.cpu_share,
        "time": _time(thread.time) if thread.time is not None else None,
        "switches": _switches(thread.switches),
        "counters": _counters(thread.counters),
        "now": activity_json.document(thread.now) if thread.now is not None else None,
    }
    if before is not None:
        entry["interval"] = _thread_interval(thread, before.threads.get(thread.tid))
    return entry


def _time(time: TimeSplit) -> dict[str, Any]:
    return {**msgspec.to_builtins(time), "unknown": list(time.unknown)}


def _switches(part: Switches | None) -> dict[str, Any] | None:
    return dict(msgspec.to_builtins(part)) if part is not None else None


def _counters(part: Counters | None) -> dict[str, Any] | None:
    if part is None:
        return None
    return {"for_s": part.duration_s, "counters": list(msgspec.to_builtins(part.counters))}


def _thread_interval(thread: Thread, before: Thread | None) -> dict[str, Any]:
    wait_s = before.wait_s if before else {}
    return {
        "wait_s": _by_kind(
            {kind: _grown(wait_s.get(kind, 0.0), now) for kind, now in thread.wait_s.items()}
        ),
        "cpu_s": _grown(before.cpu_s if before else 0.0, thread.cpu_s),
        "acquisitions": _grown(before.acquisitions if before else 0, thread.acquisitions),
        "contended": _grown(before.contended if before else 0, thread.contended),
    }


def _grown(before: float, now: float) -> float:
    """Counters only grow; a thread with a dead one's id begins anew."""
    return max(now - before, 0)


def _by_kind(seconds: Mapping[Any, float]) -> dict[str, float]:
    return {str(kind): value for kind, value in seconds.items()}


def _thread_group(group: ThreadGroup) -> dict[str, Any]:
    wait = group.wait
    return {
        "threads": list(group.tids),
        "name": group.name,
        "alive": group.first.alive,
        "state": str(group.state),
        "kind": str(wait.kind) if wait is not None else None,
        "lock": group.lock or None,
        "lock_name": group.lock_name,
        "stack": wait.stack if wait is not None else 0,
        "idle": wait is not None and wait.idle,
        "longest_s": wait.duration_s if wait is not None else None,
        "holders": list(group.holders),
        "holds": [held.lock for held in group.first.holds],
    }


def _wait(wait: Wait, why: str) -> dict[str, Any]:
    return {
        "lock": wait.lock,
        "kind": str(wait.kind),
        "since_s": wait.duration_s,
        "at_least": wait.is_lower_bound,
        "holders": list(wait.holders),
        "stack": wait.stack,
        "site": hex(wait.site),
        "timed": wait.timed,
        "shared": wait.shared,
        "idle": wait.idle,
        "why": why,
    }


def _unseen(wait: UnobservedWait) -> dict[str, Any]:
    return {
        "tid": wait.tid,
        "address": hex(wait.address),
        "name": wait.name,
        "since_s": wait.duration_s,
        "stack": wait.stack,
        "type": wait.type,
        "idle": wait.idle,
        "why": wait.why,
    }


def _held(held: Held) -> dict[str, Any]:
    return {
        "lock": held.lock,
        "site": hex(held.site),
        "since_s": held.duration_s,
        "depth": held.depth,
        "shared": held.shared,
    }


def _lock(
    lock: Lock, of: LockClass | None, before: _Before | None, by_id: Mapping[int, Lock]
) -> dict[str, Any]:
    earlier = before.locks.get(lock.id) if before else None
    entry: dict[str, Any] = {
        "id": lock.id,
        "address": hex(lock.address),
        "kind": str(lock.kind),
        "type": lock.type,
        "name": lock.name,
        **({"class": of.name} if of is not None else {}),
        "acquisitions": lock.acquisitions,
        "contended": lock.contended,
        "trylock_failed": lock.trylock_failed,
        "signals": lock.signals,
        "unheard": lock.unheard,
        "wait_s": lock.wait_s,
        "wait_error_s": lock.wait_error_s,
        "wait_max_s": lock.wait_max_s,
        "idle": lock.idle,
        "idle_s": lock.idle_s,
        "hold_s": lock.hold_s,
        "hold_timed": lock.hold_timed,
        "hold_max_s": lock.hold_max_s,
        "holders": list(lock.holders),
        "waiters": list(lock.waiters),
        "wait_stacks": [_wait_stack(stack) for stack in lock.wait_stacks],
        "blame": [
            {
                "tid": blame.tid,
                "site": hex(blame.site),
                "through": blame.through,
                "wait_s": blame.wait_s,
            }
            for blame in lock.blame
        ],
        **_blame_roots(lock, by_id),
        "destroyed": lock.destroyed,
        "recursive": lock.recursive,
        "writers_first": lock.writers_first,
        "holder_now": activity_json.document(lock.holder_activity)
        if lock.holder_activity
        else None,
        "foreign_releases": lock.foreign_releases,
        "used_as_lock": lock.used_as_lock,
    }
    if before is not None:
        entry["interval"] = lock_interval(lock, earlier)
        for stack, changed in zip(
            entry["wait_stacks"], stack_intervals(lock, earlier), strict=True
        ):
            stack["interval"] = changed
        for blame, grown_s in zip(entry["blame"], blame_intervals(lock, earlier), strict=True):
            blame["interval"] = {"wait_s": grown_s}
    return entry


def _lock_class(of: LockClass, by_id: Mapping[int, Lock], before: _Before | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": of.name,
        "kind": str(of.kind),
        "instances": len(of.locks),
        "destroyed": of.destroyed,
        "locks": list(of.locks[:_MAX_IDS]),
        "acquisitions": of.acquisitions,
        "contended": of.contended,
        "trylock_failed": of.trylock_failed,
        "signals": of.signals,
        "unheard": of.unheard,
        "wait_s": of.wait_s,
        "wait_max_s": of.wait_max_s,
        "idle": of.idle,
        "idle_s": of.idle_s,
        "hold_s": of.hold_s,
        "hold_timed": of.hold_timed,
        "hold_max_s": of.hold_max_s,
        "holders": list(of.holders),
        "waiters": list(of.waiters),
    }
    if before is not None:
        entry["interval"] = class_interval([by_id[lock] for lock in of.locks], before.locks)
    return entry


def class_interval(locks: Iterable[Lock], before: Mapping[int, Lock]) -> dict[str, float]:
    """Return the sums of what was added to each of ``locks`` since ``before``, by id."""
    parts = [lock_interval(lock, before.get(lock.id)) for lock in locks]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def lock_interval(lock: Lock, before: Lock | None) -> dict[str, float]:
    """Return the part of a lock's figures that was added since ``before``."""
    counts = ("acquisitions", "contended", "trylock_failed", "signals", "hold_timed")
    names = (*counts, "wait_s", "hold_s")
    grown = {
        name: _grown(getattr(before, name) if before else 0, getattr(lock, name)) for name in names
    }
    return grown | {"idle_s": _idle_interval(lock, before, grown["wait_s"])}


def _idle_interval(lock: Lock, before: Lock | None, wait_s: float) -> float:
    """What of ``wait_s`` was for work. Which stacks are is told by the later look, which knows more
    names."""
    if lock.idle_s in (0.0, lock.wait_s):
        return wait_s if lock.idle_s else 0.0
    parts = zip(lock.wait_stacks, stack_intervals(lock, before), strict=True)
    idle_s: float = sum(part["wait_s"] for entry, part in parts if entry.idle)
    return min(wait_s, idle_s)


def stack_intervals(lock: Lock, before: Lock | None) -> list[dict[str, Any]]:
    """Return the same of each of ``lock.wait_stacks``: its count and wait_s."""
    earlier = {entry.stack: entry for entry in before.wait_stacks} if before else {}
    none = WaitStack(0, 0, 0.0)
    return [
        {
            "count": _grown(earlier.get(entry.stack, none).count, entry.count),
            "wait_s": _grown(earlier.get(entry.stack, none).wait_s, entry.wait_s),
        }
        for entry in lock.wait_stacks
    ]


def blame_intervals(lock: Lock, before: Lock | None) -> list[float]:
    """Return what each of ``lock.blame`` grew by, seconds."""
    earlier = {one.holder: one.wait_s for one in before.blame} if before else {}
    return [_grown(earlier.get(one.holder, 0.0), one.wait_s) for one in lock.blame]


def _wait_stack(entry: WaitStack) -> dict[str, Any]:
    return {
        "stack": entry.stack, "count": entry.count, "wait_s": entry.wait_s, "idle": entry.idle,
    }  # fmt: skip


def _blame_roots(lock: Lock, by_id: Mapping[int, Lock]) -> dict[str, Any]:
    """Only where they are others than those in ``blame``."""
    if not blame_chains.is_chained(lock, by_id):
        return {}
    return {
        "blame_roots": [
            {"tid": root.tid, "lock": root.lock, "site": hex(root.site), "wait_s": root.wait_s}
            for root in blame_chains.roots(lock, by_id)
        ]
    }


def _misuse(misuse: Misuse) -> dict[str, Any]:
    return {
        "kind": str(misuse.kind),
        "lock": misuse.lock,
        "tid": misuse.tid,
        "other": misuse.other,
        "stack": misuse.stack,
        "count": misuse.count,
        "ago_s": misuse.ago_s,
    }


def _pattern(pattern: Pattern) -> dict[str, Any]:
    return {
        "name": str(pattern.name),
        "lock": pattern.lock or None,
        "tids": list(pattern.tids),
        "evidence": pattern.evidence,
        "advice": pattern.advice,
    }


def _deadlock(deadlock: Deadlock) -> dict[str, Any]:
    return {
        "certain": deadlock.certain,
        "doubt": deadlock.doubt,
        "since_s": deadlock.since_s,
        "at_least": deadlock.is_lower_bound,
        "cycle": [
            {
                "tid": edge.tid,
                "waits_for": edge.waits_for,
                "held_by": edge.held_by,
                "stack": edge.stack,
                "site": hex(edge.site),
                "behind": edge.behind,
                "how": str(edge.reason),
                "pid": edge.pid,
            }
            for edge in deadlock.cycle
        ],
        "stuck": list(deadlock.stuck),
    }


def _order(cycle: OrderCycle) -> dict[str, Any]:
    return {
        "locks": list(cycle.locks),
        "edges": [
            {
                "from": edge.from_,
                "to": edge.to,
                "tid": edge.tid,
                "stack": edge.stack,
                "from_site": hex(edge.site),
                "shared": edge.shared,
                "from_shared": edge.from_shared,
            }
            for edge in cycle.edges
        ],
        "confidence": str(cycle.confidence),
        "why": cycle.why,
        "classes": list(cycle.classes),
    }


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "module": frame.module,
        "address": hex(frame.address),
        "offset": hex(frame.offset),
        "inlined": frame.inlined,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "tid": event.tid,
        "lock": event.lock,
        "kind": str(event.kind),
        "ago_s": event.ago_s,
        "wait_s": event.wait_s,
        "hold_s": event.hold_s,
        "stack": event.stack,
        "holder": event.holder,
        "site": hex(event.site),
        "timed_out": event.timed_out,
    }
