"""Puts the threads of a snapshot into groups with equal stacks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis.thread_groups import common_name
from locktop.collector.extensions.stacks.model import AllStacks, GroupState, StackGroup
from locktop.collector.extensions.stacks.unknown_stacks import BRIEF_S, UnknownStacks
from locktop.collector.model import (
    ActivityState,
    Frame,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.sources.thread_stacks.scanned_ids import stack_id
from locktop.collector.symbols.python import merge_stacks

_ORDER = {state: number for number, state in enumerate(GroupState)}
_BY_STATE = {
    ThreadState.RUNNING: GroupState.RUNNING,
    ThreadState.RUNNABLE: GroupState.RUNNING,
    ThreadState.WAITING: GroupState.WAITING,
    ThreadState.IDLE: GroupState.IDLE,
    ThreadState.OTHER: GroupState.OTHER,
}
_ACTIVE = GroupState.ACTIVE
_NONE: Mapping[int, tuple[Frame, ...]] = {}


class _GroupKey(NamedTuple):
    """The members of a group have this in common."""

    state: GroupState
    missing: str
    frames: Hashable
    is_later: bool


def find(snapshot: Snapshot, later: Mapping[int, tuple[Frame, ...]] = _NONE) -> AllStacks:
    """Return all threads of the process in groups; the groups without a known stack come last.

    Args:
        snapshot: the scan.
        later: by tid, the stacks of threads that went on, read a moment after the scan.
    """
    unknown, holders = UnknownStacks(snapshot), _holder_activities(snapshot)
    stuck = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    members: dict[_GroupKey, list[Thread]] = {}
    frames_of: dict[_GroupKey, tuple[Frame, ...]] = {}
    for scanned in snapshot.threads:
        if scanned.pid:  # of another process, which shares a lock
            continue
        is_later = scanned.tid in later
        thread = _add_holder_activity(scanned, holders)
        frames = _replace_unread(later[thread.tid] if is_later else _frames(snapshot, thread))
        state = GroupState.DEADLOCKED if thread.tid in stuck else _state(thread)
        if is_later and not stack_id(snapshot, thread) and since_s(thread) < BRIEF_S:
            # The stack is not that of the wait, or the call, of the scan.
            thread = replace(thread, waiting_for=None, now=None)
            state = state if state in (GroupState.DEADLOCKED, GroupState.RUNNING) else _ACTIVE
        key = _GroupKey(
            state=state,
            missing="" if frames else unknown.reason(thread),
            frames=tuple(map(_frame_key, frames)),
            is_later=is_later,
        )
        members.setdefault(key, []).append(thread)
        frames_of[key] = frames
    groups = [_group(key, threads, frames_of[key]) for key, threads in members.items()]
    groups.sort(key=_rank)
    return AllStacks(
        snapshot, tuple(replace(group, number=number) for number, group in enumerate(groups, 1))
    )


def since_s(thread: Thread) -> float:
    """Return the seconds of a thread's present wait or call; 0 if it is in none."""
    if thread.waiting_for is not None:
        return thread.waiting_for.duration_s
    return thread.now.duration_s if thread.now is not None else 0.0


def _holder_activities(snapshot: Snapshot) -> dict[int, ThreadActivity]:
    """Return the present activities of holders by tid: each scan has them, also in a recording."""
    activities = (lock.holder_activity for lock in snapshot.locks)
    return {now.tid: now for now in activities if now is not None and not now.stack_age_s}


def _add_holder_activity(thread: Thread, holders: Mapping[int, ThreadActivity]) -> Thread:
    as_holder = holders.get(thread.tid)
    if as_holder is None or thread.waiting_for is not None or thread.now is not None:
        return thread
    return replace(thread, now=as_holder)


def _frames(snapshot: Snapshot, thread: Thread) -> tuple[Frame, ...]:
    return snapshot.stacks.get(stack_id(snapshot, thread), ())


def _replace_unread(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    return merge_stacks.replace_unread(frames) if merge_stacks.runs_python(frames) else frames


def _state(thread: Thread) -> GroupState:
    now, wait = thread.now, thread.waiting_for
    if not thread.alive:
        return GroupState.ENDED
    if now is not None and now.doing is ActivityState.STOPPED:
        return GroupState.STOPPED
    if now is not None and now.doing is ActivityState.RUNNING:
        return GroupState.RUNNING
    if wait is not None and not wait.idle:
        return GroupState.WAITING
    is_blocked = now is not None and now.doing is ActivityState.BLOCKED
    is_idle = thread.state is ThreadState.IDLE
    if wait is None and thread.holds and is_idle:
        return GroupState.ASLEEP
    is_futex = now is not None and now.call.startswith("futex")  # maybe a lock
    if is_blocked and (is_futex or not is_idle):
        return GroupState.ASLEEP
    return _BY_STATE[thread.state]


def _frame_key(frame: Frame) -> Hashable:
    name = frame.function or (frame.module, frame.offset)
    return name, frame.directory, frame.file, frame.line


def _group(key: _GroupKey, threads: Sequence[Thread], frames: Sequence[Frame]) -> StackGroup:
    return StackGroup(
        number=0,
        state=key.state,
        threads=sorted(threads, key=_longest_first),
        name=common_name([thread.name for thread in threads]),
        frames=frames,
        missing=key.missing,
        is_later=key.is_later,
    )


def _rank(group: StackGroup) -> tuple[bool, int, float, int, int]:
    first = group.threads[0]
    longest_s = since_s(first) if group.state in (GroupState.WAITING, GroupState.ASLEEP) else 0.0
    return (
        bool(group.missing),
        _ORDER[group.state],
        -longest_s,
        -len(group.threads),
        first.tid,
    )


def _longest_first(thread: Thread) -> tuple[float, int]:
    return -since_s(thread), thread.tid
