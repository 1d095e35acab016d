"""Stacks of waits that are going on, with the Python functions in them.

The native stack is known already, as the library recorded it when the wait began, or as it was
followed from outside; Python's frames are read while the thread is in that wait. The wait's number
tells whether they belong together: it must be the same before the reading and in a look after it. A
thread's Python frames do not change while it waits, so each wait is read once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set

from msgspec.structs import replace

from locktop.collector.analysis.lock_classes import is_unnamed
from locktop.collector.model import Deadlock, Draft, Frame, Thread
from locktop.collector.sources.preload import stack_table as recorded
from locktop.collector.sources.probes import native_stacks
from locktop.collector.symbols.python import merge_stacks
from locktop.collector.symbols.python.frame_reader import PythonReader, Runs

#: Ids of merged stacks begin here: those in the file are smaller, those taken from outside larger.
FIRST_ID = 1 << 32
_IDS = range(FIRST_ID, native_stacks.FIRST_ID)
#: These stand at the outer end of native stacks that are not whole.
_CUTS = recorded.CUT, native_stacks.CUT
_PAUSE_S = 1.0  # from one reading to the next, and ten times as long as one takes
_PATIENCE_S = 10.0
_TRIES = 8  # for one wait; a thread may be missed where others come and go
_MAX_KEPT = 4096  # merged stacks
#: How long a look waits for an answer where waits are over by the next look, and how often it does
#: for one lock: they need a name, and some waits last for long enough.
_BRIEF_S = 0.3
_MAX_BRIEF = 16

WaitKey = tuple[int, int]  # one life of a thread, number of its wait
Waits = Mapping[int, WaitKey]  # by tid
Merged = tuple[int, Runs]  # the native stack's id


class PythonStacks:
    """The merged stacks of one process; costs nothing where no Python code waits."""

    def __init__(self, reader: PythonReader, frames: Callable[[int], tuple[Frame, ...]]) -> None:
        """``frames`` gives those of a native stack, by its id."""
        self._frames = frames
        self._reader = reader
        self._known: dict[tuple[int, WaitKey], Runs] = {}  # () where there is nothing to merge
        self._of_wait: dict[tuple[int, WaitKey], int] = {}  # merged stacks
        self._missed: dict[tuple[int, WaitKey], int] = {}  # how often
        self._asked: Waits = {}
        self._before: Waits = {}
        self._answer: Mapping[int, Runs] | None = None
        self._next_at = 0.0
        #: Whether Python's functions in a wait were learnt in the last look.
        self.learned = False
        #: Locks that only brief waits could name, at the last look; how often these were asked for.
        self._brief: Set[int] = frozenset()
        self._tried: dict[int, int] = {}
        self._ids: dict[Merged, int] = {}
        self._merged: dict[int, Merged] = {}
        self._next_id = FIRST_ID
        #: Where no Python code was executed, when it was last asked: by native stack.
        self._without: dict[int, tuple[Frame, ...]] = {}
        #: By merged stack: the native one's frames when it was merged last, and what came of it.
        self._last: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}

    def hurry(self) -> None:
        """Wait for no answer any more. For a handler of signals."""
        self._reader.hurry()

    def close(self) -> None:
        """End what reads the frames."""
        self._reader.close()

    def notes(self) -> tuple[str, ...]:
        """Return why there are no Python frames where there should be."""
        return (self._reader.note,) if self._reader.note else ()

    def of(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack of either kind, innermost first."""
        if stack not in _IDS:
            return self._frames(stack)
        if stack not in self._merged:
            return ()
        native, runs = self._merged[stack]
        frames = self._frames(native)
        known = self._last.get(stack)
        if known is None or known[0] != frames:  # names and lines come one by one
            known = self._last[stack] = frames, self._merge(frames, runs) or frames
        return known[1]

    def of_wait(self, tid: int, waits: Waits) -> tuple[Frame, ...]:
        """Return the merged stack of the wait that a thread is in, () if there is none (yet)."""
        wait = tid, waits.get(tid, (0, 0))
        return self.of(self._of_wait[wait]) if wait in self._of_wait else ()

    def of_sleep(self, tid: int, sleep: WaitKey) -> int:
        """Return the id of the merged stack of a sleep that was among the ``waits`` of the last
        look, 0 if there is none (yet)."""
        return self._of_wait.get((tid, sleep), 0)

    @property
    def has_merged(self) -> bool:
        """Whether there are merged stacks, of waits that go on."""
        return bool(self._of_wait)

    # ---- look after look ----

    def runs_in(self, stacks: Mapping[int, tuple[Frame, ...]]) -> bool:
        """Tell whether Python code is executed on one of these native stacks, by their ids."""
        return any(map(self._runs_python, stacks, stacks.values()))

    @property
    def asks_for_another_scan(self) -> bool:
        """Whether the last look showed a lock that only brief waits could name."""
        return bool(self._brief)

    def begin(self, again: Callable[[], Waits]) -> None:
        """To be called before the waits are read: only what was answered by now is known to be of
        waits that are the same before and after. ``again`` reads the waits."""
        answer = self._reader.answer()
        is_time = not self._reader.asking and time.monotonic() >= self._next_at
        if answer is None and is_time and self._brief:
            for lock in self._brief:
                self._tried[lock] = self._tried.get(lock, 0) + 1
            self._ask(again())
            answer = self._reader.answer(_BRIEF_S)
        if answer is not None:
            self._answer = answer
            self._next_at = time.monotonic() + max(_PAUSE_S, 10 * self._reader.took_s)

    def merge(self, snapshot: Draft, waits: Waits) -> None:
        """Fill in merged stacks where they are known, and request the others."""
        self._forget(waits)
        self.learned = False
        if self._answer is not None:
            self._learn(self._answer, waits)
            self._answer = None
        # A wait shorter than a look takes to come would be over before it is read.
        lasting = {tid: key for tid, key in waits.items() if self._before.get(tid) == key}
        if time.monotonic() >= self._next_at and not self._reader.asking:
            self._next_at = time.monotonic() + _PAUSE_S
            if self._wanted(snapshot, lasting):
                self._ask(waits)
        self._brief = self._nameless(snapshot, waits.keys() - lasting.keys())
        self._before = waits
        self._replace_stacks(snapshot, waits)

    def merge_all(self, snapshot: Draft, waits: Waits, again: Callable[[], Waits]) -> None:
        """Fill in all merged stacks that can be had. ``again`` reads the waits."""
        if not self._wanted(snapshot, waits):
            self._replace_stacks(snapshot, waits)
            return
        deadline = time.monotonic() + _PATIENCE_S
        self._reader.answer(_PATIENCE_S)  # of a question that was asked before
        lasting = waits
        for _ in range(_TRIES):
            self._ask(lasting)
            answer = self._reader.answer(max(0.0, deadline - time.monotonic()))
            if answer is not None:
                now = again()
                lasting = {tid: key for tid, key in lasting.items() if now.get(tid) == key}
                self._learn(answer, lasting)
            if not self._wanted(snapshot, lasting):
                break
        self._brief = self._nameless(snapshot, waits.keys() - lasting.keys())
        self._replace_stacks(snapshot, waits)

    def _nameless(self, snapshot: Draft, brief: Set[int]) -> Set[int]:
        """The locks without a name that Python code waits for, but none of it for long. ``brief``:
        the threads whose waits may be."""
        threads = [thread for thread in snapshot.threads if thread.tid in brief]
        if self._reader.gave_up or not threads:
            return frozenset()
        stacks = {
            stack: frames
            for thread in threads
            if (frames := snapshot.stacks.get(stack := thread.stack))
        }
        python = {stack for stack, frames in stacks.items() if self._runs_python(stack, frames)}
        waited = {
            thread.waiting_for.lock
            for thread in threads
            if thread.waiting_for is not None and thread.stack in python
        }
        return {
            lock.id
            for lock in (snapshot.locks if waited else ())
            if lock.id in waited and is_unnamed(lock) and self._tried.get(lock.id, 0) < _MAX_BRIEF
        }

    def _wanted(self, snapshot: Draft, waits: Waits) -> bool:
        """Tell whether Python code waits in one of these that was not read yet."""
        if self._reader.gave_up:
            return False
        python = {
            stack for stack, frames in snapshot.stacks.items() if self._runs_python(stack, frames)
        }
        return bool(python) and any(
            thread.stack in python
            and thread.tid in waits
            and (thread.tid, waits[thread.tid]) not in self._known
            for thread in snapshot.threads
        )

    def _runs_python(self, stack: int, frames: tuple[Frame, ...]) -> bool:
        """Asked again and again of the same ones, of which most never do."""
        if self._without.get(stack) is frames:
            return False
        found = merge_stacks.runs_python(frames)
        if not found:
            self._without[stack] = frames
        return found

    def _ask(self, waits: Waits) -> None:
        if not self._reader.asking:  # else what is answered was read before these waits were
            self._asked = waits
            self._reader.ask()

    def _learn(self, answer: Mapping[int, Runs], waits: Waits) -> None:
        for tid, key in waits.items():
            if self._asked.get(tid) != key:
                continue
            wait = tid, key
            self._missed[wait] = self._missed.get(wait, 0) + (tid not in answer)
            if tid in answer or self._missed[wait] >= _TRIES:
                self._known[wait] = answer.get(tid, ())
                self.learned |= tid in answer

    def _forget(self, waits: Waits) -> None:
        for wait in [wait for wait in self._known if waits.get(wait[0]) != wait[1]]:
            del self._known[wait]
            self._of_wait.pop(wait, None)
        for wait in [wait for wait in self._missed if waits.get(wait[0]) != wait[1]]:
            del self._missed[wait]
        if len(self._merged) > _MAX_KEPT:
            self._ids.clear()
            self._merged.clear()
            self._of_wait.clear()
            self._last.clear()
            self._tried.clear()
        if len(self._without) > _MAX_KEPT:
            self._without.clear()

    # ---- in the snapshot ----

    def _replace_stacks(self, snapshot: Draft, waits: Waits) -> None:
        if not self._known:
            return
        merged: dict[int, tuple[int, int]] = {}  # tid -> the native stack's id, the merged one's
        for thread in snapshot.threads:
            stack = self._merged_stack(thread, waits)
            if stack:
                merged[thread.tid] = thread.stack, stack
        if not merged:
            return
        stacks = {stack: self.of(stack) for _, stack in merged.values()}
        snapshot.threads = tuple(_with_stack(thread, merged) for thread in snapshot.threads)
        snapshot.deadlocks = tuple(_with_stacks(found, merged) for found in snapshot.deadlocks)
        snapshot.stacks = {**snapshot.stacks, **stacks}

    def _merged_stack(self, thread: Thread, waits: Waits) -> int:
        if thread.tid not in waits:
            return 0
        wait = thread.tid, waits[thread.tid]
        if wait in self._of_wait:
            return self._of_wait[wait]
        runs = self._known.get(wait)
        native = thread.stack
        if not runs or not native or native in _IDS:
            return 0
        stack = self._ids.get((native, runs), 0)
        if not stack and self._merge(self.of(native), runs):
            stack = self._ids[native, runs] = self._next_id
            self._merged[stack] = native, runs
            self._next_id += 1
        if stack:
            self._of_wait[wait] = stack
        return stack

    def _merge(self, frames: tuple[Frame, ...], runs: Runs) -> tuple[Frame, ...] | None:
        if not frames or frames[-1] not in _CUTS:
            return merge_stacks.merged(frames, runs)
        found = merge_stacks.merged(frames[:-1], runs, whole=False)
        return (*found, frames[-1]) if found else None


def _with_stack(thread: Thread, merged: Mapping[int, tuple[int, int]]) -> Thread:
    if thread.tid not in merged:
        return thread
    _, stack = merged[thread.tid]
    if thread.waiting_for is not None:
        return replace(thread, waiting_for=replace(thread.waiting_for, stack=stack))
    return replace(thread, now=replace(thread.now, stack=stack)) if thread.now else thread


def _with_stacks(found: Deadlock, merged: Mapping[int, tuple[int, int]]) -> Deadlock:
    cycle = tuple(
        replace(edge, stack=merged[edge.tid][1])
        if merged.get(edge.tid, (0, 0))[0] == edge.stack
        else edge
        for edge in found.cycle
    )
    return replace(found, cycle=cycle)
