"""All stacks as one JSON object. Times are seconds, addresses hex strings."""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.stacks.model import AllStacks, StackGroup
from locktop.collector.extensions.stacks.words import StackWords
from locktop.collector.model import Frame, Lock, Thread
from locktop.collector.sanitize import clean

FORMAT = "locktop.stacks"
VERSION = 1


def document(stacks: AllStacks) -> dict[str, Any]:
    """Return the object, with all threads."""
    snapshot, words = stacks.snapshot, StackWords(stacks)
    locks = {lock.id: lock for lock in snapshot.locks}
    return {
        "format": FORMAT,
        "version": VERSION,
        "taken_at": snapshot.taken_at,
        "host": clean(snapshot.host),
        "source": snapshot.source,
        "process": {"pid": snapshot.process.pid, "comm": clean(snapshot.process.comm)},
        "threads": stacks.count,
        "unknown": stacks.unknown,
        "groups": [_group(group, words, locks) for group in stacks.groups],
        "notes": [clean(note) for note in snapshot.notes],
    }


def _group(group: StackGroup, words: StackWords, locks: dict[int, Lock]) -> dict[str, Any]:
    return {
        "state": group.state,
        "name": clean(group.name),
        "does": [clean(line) for line in words.what(group)],
        "threads": [_thread(thread, locks) for thread in group.threads],
        "stack": [_frame(frame) for frame in group.frames] if group.frames else None,
        "unknown_because": clean(group.missing) or None,
        "read_later": group.is_later,
    }


def _thread(thread: Thread, locks: dict[int, Lock]) -> dict[str, Any]:
    wait, now = thread.waiting_for, thread.now
    lock = locks.get(wait.lock) if wait is not None else None
    return {
        "tid": thread.tid,
        "name": clean(thread.name),
        "waiting_for": {
            "lock": clean(lock.name) if lock is not None else None,
            "address": f"{lock.address:#x}" if lock is not None and lock.address else None,
            "kind": wait.kind,
            "since_s": wait.duration_s,
            "is_lower_bound": wait.is_lower_bound,
            "idle": wait.idle,
            "holders": list(wait.holders),
        }
        if wait is not None
        else None,
        "now": {
            "doing": now.doing,
            "call": clean(now.what or now.call) or None,
            "since_s": now.duration_s,
            "is_lower_bound": now.is_lower_bound,
        }
        if now is not None
        else None,
    }


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "function": clean(frame.function) or None,
        "file": clean(frame.path) or None,
        "line": frame.line,
        "module": clean(frame.module) or None,
        "address": f"{frame.address:#x}" if frame.address else None,
        "inlined": frame.inlined,
    }
