"""The sentences about a process whose threads all wait for each other (model.Hang)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.model import (
    BlockReason,
    Frame,
    Kind,
    Lock,
    Snapshot,
    Thread,
    UnobservedWait,
    Wait,
)
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import (
    file_and_line,
    full_location,
    function_name,
)
from locktop.collector.render.words.units import counted, lasting
from locktop.collector.symbols.python.interpreter import is_interpreter_module

_MAX_GROUPS = 8
_MAX_NAMED = 4
_MAX_FRAMES = 30
#: The name of an object that is called after a source location.
_IN_CODE = re.compile(r"^\w+ (?:made )?in .+\)$")
#: The advice about a certain hang.
REMEDY = (
    "Nothing in this process will ever run again, and no other process can wake it. Save this"
    " report, and restart the process."
)


class HungThreads(Struct, frozen=True):
    """Threads that wait for one object at one source location."""

    threads: tuple[Thread, ...]
    what: str  # "mutex g_lock", "std::future", "the end of worker"
    frame: Frame | None  # the innermost one of the program
    stack: int  # id of the stack of the first of the threads
    changed: str = ""  # that the value of the object has changed already

    @property
    def who(self) -> str:
        """The name of a single thread, else their number."""
        return self.threads[0].name if len(self.threads) == 1 else str(len(self.threads))

    @property
    def where(self) -> str:
        """The source location: " in f (file.c:7)", "" unknown."""
        if self.frame is None or _IN_CODE.search(self.what):
            return ""
        line = file_and_line(self.frame)
        return f" in {function_name(self.frame)}" + (f" ({line})" if line else "")


def groups(snapshot: Snapshot) -> list[HungThreads]:
    """Return the threads of the hang by object and source location.

    Threads that wait for somebody outside of the process come first, then the largest groups.
    """
    hang = snapshot.hang
    if hang is None:
        return []
    locks = {lock.id: lock for lock in snapshot.locks}
    threads = {thread.tid: thread for thread in snapshot.threads}
    unobserved = {wait.tid: wait for wait in snapshot.unobserved_waits}
    describe = partial(_describe, snapshot, locks, threads)
    by_wait: dict[object, list[HungThreads]] = {}
    for tid in hang.tids:
        if tid in threads:
            hung = describe(threads[tid], unobserved.get(tid))
            by_wait.setdefault((hung.what, hung.where, hung.changed), []).append(hung)
    joined = [
        HungThreads(
            threads=tuple(thread for part in alike for thread in part.threads),
            what=alike[0].what,
            frame=alike[0].frame,
            stack=alike[0].stack,
            changed=alike[0].changed,
        )
        for alike in by_wait.values()
    ]
    return sorted(
        joined, key=lambda group: (group.threads[0].tid not in hang.calls, -len(group.threads))
    )


def is_the_finding(snapshot: Snapshot) -> bool:
    """Return whether a certain hang says more than the deadlocks of the snapshot.

    A deadlock over a barrier names a thread that has not come, perhaps one that never comes there.
    The hang needs no such guess.
    """
    hang = snapshot.hang
    if hang is None or not hang.certain:
        return False
    return all(
        any(edge.reason is BlockReason.ABSENT for edge in deadlock.cycle)
        for deadlock in snapshot.deadlocks
    )


def sentence(snapshot: Snapshot) -> str:
    """Return which threads wait for what and where, in one line."""
    hang, process = snapshot.hang, snapshot.process
    if hang is None:
        return ""
    parts = [part(group) for group in groups(snapshot)]
    left = len(parts) - _MAX_GROUPS
    more = f", and {counted(left, 'group')} more" if left > 0 else ""
    unless = f", unless {hang.doubt}" if hang.doubt else ""
    listed = ", ".join(parts[:_MAX_GROUPS])
    return f"{whom(snapshot, f'{process.comm} {process.pid}')}{unless}: {listed}{more}"


def whom(snapshot: Snapshot, process: str = "") -> str:
    """Return "all 5 threads of pool 4711 wait for each other, for 12 s"."""
    hang = snapshot.hang
    assert hang is not None
    count, owner = len(hang.tids), f" of {process}" if process else ""
    lasts = lasting(hang.since_s, hang.is_lower_bound)
    if count == 1:
        return f"the only thread{owner} waits for what no thread is left to give, for {lasts}"
    return f"all {count} threads{owner} wait for each other, for {lasts}"


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the section of a text report: the threads by what they wait for, with their stacks."""
    hang = snapshot.hang
    if hang is None:
        return
    yield f"{'HANG' if hang.certain else 'POSSIBLE HANG'}: {whom(snapshot)}"
    for group in groups(snapshot):
        yield ""
        yield f"  {_names(group.threads)} for {group.what}{group.changed}{group.where}"
        yield from _stack(snapshot.stacks.get(group.stack, ()))
    yield ""
    yield REMEDY if hang.certain else f"This is no hang if {hang.doubt}."


def part(group: HungThreads) -> str:
    """Return "4 wait for std::future in count_rows (pool.cc:20)"."""
    return f"{wait_words(group)}{group.where}"


def wait_words(group: HungThreads) -> str:
    """Return the same without the source location: "4 wait for std::future"."""
    verb = "waits" if len(group.threads) == 1 else "wait"
    return f"{group.who} {verb} for {group.what}{group.changed}"


def _describe(
    snapshot: Snapshot,
    locks: Mapping[int, Lock],
    threads: Mapping[int, Thread],
    thread: Thread,
    unobserved: UnobservedWait | None,
) -> HungThreads:
    wait = thread.waiting_for
    stack = thread.stack
    if wait is not None and wait.stack:
        stack = wait.stack
    elif wait is None and unobserved is not None and unobserved.stack:
        stack = unobserved.stack
    frames = snapshot.stacks.get(stack, ())
    waits_for_gil = snapshot.hang is not None and thread.tid in snapshot.hang.gil_waiters
    if waits_for_gil:
        frames = tuple(frame for frame in frames if not is_interpreter_module(frame.module))
    frame = innermost_own_frame(frames)
    if frame is None and wait is not None:
        frame = snapshot.sites.get(wait.site)
    what = "an unknown object"
    if snapshot.hang is not None and thread.tid in snapshot.hang.calls:
        call = snapshot.hang.calls[thread.tid]
        what = f"{'room in' if call.startswith('write') else 'data of'} a pipe, {call}"
    elif waits_for_gil:
        what = "the GIL of Python"
    elif wait is not None and wait.kind is Kind.JOIN:
        joined = threads.get(wait.awaits)
        what = f"the end of {joined.name}" if joined is not None else "the end of a thread"
    elif wait is not None:
        what = _lock_name(locks.get(wait.lock), wait.kind)
        if wait.kind is Kind.BARRIER and wait.parties:
            what += _missing(snapshot, wait)
    elif unobserved is not None:
        what = unobserved.name or unobserved.type or "a futex"
    result = HungThreads(
        threads=(thread,),
        what=what,
        frame=frame,
        stack=stack,
        changed=_changed_words(snapshot, thread),
    )
    # An object without a name is called after the source location of its waiters.
    kind = what.removesuffix(result.where).removesuffix(" wait")
    return replace(result, what=kind)


def _missing(snapshot: Snapshot, wait: Wait) -> str:
    """Return how many threads a barrier misses, and which threads of the process have ended."""
    waits = [thread.waiting_for for thread in snapshot.threads if thread.waiting_for is not None]
    here = sum(other.lock == wait.lock for other in waits)
    ended = [thread.name or str(thread.tid) for thread in snapshot.threads if not thread.alive]
    verb = "has" if len(ended) == 1 else "have"
    named = f"; {', '.join(ended)} {verb} ended" if 0 < len(ended) <= _MAX_NAMED else ""
    missing = wait.parties - here
    return f" ({missing} of {wait.parties} {'is' if missing == 1 else 'are'} missing{named})"


def _lock_name(lock: Lock | None, kind: Kind) -> str:
    name = lock.name if lock is not None else ""
    if kind is Kind.FUTEX and name:
        return name
    return name_with_kind(kind, name).rstrip()


def _changed_words(snapshot: Snapshot, thread: Thread) -> str:
    hang = snapshot.hang
    if hang is None or thread.tid not in hang.changed_words:
        return ""
    return f" ({hang.changed_words[thread.tid]} already: nobody woke it)"


def _names(threads: Sequence[Thread]) -> str:
    named = ", ".join(f"{thread.name} ({thread.tid})" for thread in threads[:_MAX_NAMED])
    more = f" and {counted(len(threads) - _MAX_NAMED, 'thread')} more"
    verb = "waits" if len(threads) == 1 else "wait"
    return f"{named}{more if len(threads) > _MAX_NAMED else ''} {verb}"


def _stack(frames: Sequence[Frame]) -> Iterator[str]:
    for number, frame in enumerate(frames[:_MAX_FRAMES]):
        yield f"    {number} {full_location(frame)}{' (inlined)' * frame.inlined}"
    if len(frames) > _MAX_FRAMES:
        yield f"    and {counted(len(frames) - _MAX_FRAMES, 'frame')} more"
