"""Stacks of waits that go on, with their Python functions.

The native stack is known already. The library recorded it at the begin of the wait, or a probe
unwound it. A reader gets Python's frames while the thread is in the wait. Both belong together if
the wait's number is the same before the reading and in a later scan. A thread's Python frames do
not change during a wait, so each wait is read once.

With the library, some readings are samples, too: they tell the functions of past waits, see
python_shares.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence, Set

from msgspec.structs import replace

from locktop.collector.analysis.lock_classes import is_unnamed
from locktop.collector.model import Deadlock, Draft, Frame, Snapshot, Thread
from locktop.collector.model.frames import CUT_WHEN_RECORDED, CUT_WHEN_UNWOUND
from locktop.collector.sources.probes import native_stacks
from locktop.collector.sources.probes.python_shares import MetWait, PythonShares, WaitKey
from locktop.collector.symbols.python import merge_stacks
from locktop.collector.symbols.python.frame_reader import PythonReader, Runs
from locktop.collector.symbols.python.interpreter import is_interpreter

#: Ids of merged stacks begin here. Ids of recorded stacks are smaller, ids of unwound ones larger.
FIRST_ID = 1 << 32
_IDS = range(FIRST_ID, native_stacks.FIRST_ID)
#: The outer ends of incomplete native stacks.
_CUTS = CUT_WHEN_RECORDED, CUT_WHEN_UNWOUND
PAUSE_S = 1.0  # seconds between two readings, and at least ten times the duration of one
_PATIENCE_S = 10.0
_TRIES = 8  # for one wait; a reading may miss a thread while threads come and go
_MAX_KEPT = 4096  # merged stacks
#: Seconds that a scan waits for an answer about brief waits. Such waits end before the next scan,
#: but their lock needs a name, and some of them last long enough.
_BRIEF_S = 0.3
#: How often a scan tries that for one lock, and the seconds between later tries.
_MAX_BRIEF, _BRIEF_PAUSE_S = 16, 5.0
#: Seconds that a scan waits for the first answer.
_FIRST_S = 0.4
#: The first samples follow each other at once. Later ones have pauses of so many seconds, and use
#: at most this part of a CPU.
_FIRST_SAMPLES = 30
_SAMPLE_PAUSE_S, _WELL_KNOWN_PAUSE_S = 1.0, 5.0
_SAMPLE_CPU = 1 / 20

#: Reads the waits of this moment, by tid.
ReadSample = Callable[[], Mapping[int, MetWait]]
WaitKeys = Mapping[int, WaitKey]  # by tid
Merged = tuple[int, Runs]  # the native stack's id


class PythonStacks:
    """The merged stacks of one process. They cost nothing if no Python code waits."""

    def __init__(
        self,
        reader: PythonReader,
        frames: Callable[[int], tuple[Frame, ...]],
        read_sample: ReadSample | None = None,
        pause_s: float = PAUSE_S,
        is_final: Callable[[Frame], bool] = lambda _: True,
    ) -> None:
        """Args:
        reader: reads the Python functions of the process.
        frames: returns the frames of a native stack by its id.
        read_sample: for the functions of past waits; None if past waits have no stacks.
        pause_s: the least time between two readings.
        is_final: tells whether nothing more can be known of a native frame.
        """
        self._is_final = is_final
        self._read_sample = read_sample
        self._shares = PythonShares()
        self._next_sample_at = 0.0
        self._has_begun_sample = False  # and the reader has not answered yet
        self._frames = frames
        self._pause_s = pause_s
        self._reader = reader
        self._wait_runs: dict[tuple[int, WaitKey], Runs] = {}  # () if there is nothing to merge
        self._of_wait: dict[tuple[int, WaitKey], int] = {}  # merged stacks
        self._missed: dict[tuple[int, WaitKey], int] = {}  # how often
        self._requested: WaitKeys = {}
        self._before: WaitKeys | None = None  # the waits of the scan before
        self._answer: Mapping[int, Runs] | None = None
        self._has_answer = False  # ever
        self._next_at = 0.0
        #: Whether the last scan learned the Python functions of a wait.
        self.learned = False
        #: Locks that only brief waits can name, from the last scan. For each: number of readings,
        #: and time.monotonic() of the last one.
        self._brief: Set[int] = frozenset()
        self._tried: dict[int, tuple[int, float]] = {}
        self._ids: dict[Merged, int] = {}
        self._merged: dict[int, Merged] = {}
        self._next_id = FIRST_ID
        #: Native stacks without Python code, with their frames at that check.
        self._without: dict[int, tuple[Frame, ...]] = {}
        #: By merged stack: the native frames at the last merge, and the result.
        self._last: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}

    def hurry(self) -> None:
        """Stop waiting for answers. A signal handler may call this method."""
        self._reader.hurry()

    def close(self) -> None:
        """End the process that reads the frames."""
        self._reader.close()

    def notes(self) -> tuple[str, ...]:
        """Return why Python frames are missing, if they are."""
        return (self._reader.note,) if self._reader.note else ()

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a native or merged stack, innermost first."""
        if stack not in _IDS:
            return self._frames(stack)
        if stack not in self._merged:
            return ()
        native, runs = self._merged[stack]
        frames = self._frames(native)
        last = self._last.get(stack)
        if last is not None and last[0] == frames:
            return last[1]
        merged = self._merge(frames, runs)  # names and lines arrive one by one
        if merged is not None:
            self._last[stack] = frames, merged
        return merged or frames

    def holder_frames(self, stack: int) -> tuple[Frame, ...]:
        """Return frames(), without the interpreter's if the Python functions were not read."""
        frames = self.frames(stack)
        if stack in _IDS or self._reader.gave_up or not self._runs_python(stack, frames):
            return frames
        return merge_stacks.replace_unread(frames)

    def wait_stack(self, tid: int, waits: WaitKeys) -> tuple[Frame, ...]:
        """Return the merged stack of a thread's wait; () if there is none yet."""
        wait = tid, waits.get(tid, (0, 0))
        return self.frames(self._of_wait[wait]) if wait in self._of_wait else ()

    def sleep_stack(self, tid: int, sleep: WaitKey) -> int:
        """Return the id of the merged stack of a sleep, 0 if there is none yet.

        The sleep must be among the ``waits`` of the last scan.
        """
        return self._of_wait.get((tid, sleep), 0)

    @property
    def has_merged(self) -> bool:
        """Whether waits that go on have merged stacks."""
        return bool(self._of_wait)

    # ---- each scan ----

    def runs_in(self, stacks: Mapping[int, tuple[Frame, ...]]) -> bool:
        """Return whether Python code runs on one of these native stacks."""
        return any(map(self._runs_python, stacks, stacks.values()))

    @property
    def wants_another_scan(self) -> bool:
        """Whether the last scan showed a lock that only brief waits can name."""
        return bool(self._brief)

    def begin(self, read_again: Callable[[], WaitKeys]) -> None:
        """Take over the answer of the reader. Call this method before the waits are read.

        Only an answer from before belongs to waits that are the same before and after.

        Args:
            read_again: reads the waits.
        """
        # The first picture has no names. The second scan waits for them.
        answer = self._reader.answer(0.0 if self._has_answer else _FIRST_S)
        is_time = not self._reader.asking and time.monotonic() >= self._next_at
        if answer is None and is_time and self._brief:
            for lock in self._brief:
                tries, _ = self._tried.get(lock, (0, 0.0))
                self._tried[lock] = tries + 1, time.monotonic()
            self._request(read_again())
            answer = self._reader.answer(_BRIEF_S)
        if answer is not None:
            self._answer, self._has_answer = answer, True
            if not self._has_begun_sample:  # else samples would keep off all other requests
                self._next_at = time.monotonic() + max(self._pause_s, 10 * self._reader.took_s)
            self._end_sample(answer)

    def merge(self, snapshot: Draft, waits: WaitKeys, last: Snapshot | None = None) -> None:
        """Fill in known merged stacks and shares of past waits, and request the others.

        Args:
            snapshot: the draft.
            waits: the waits of this scan.
            last: the snapshot before.
        """
        self._forget(waits)
        self.learned = False
        if self._answer is not None:
            self._learn(self._answer, waits)
            self._answer = None
        # A wait shorter than the interval would be over before the reader gets to it.
        lasting = {}
        if self.runs_in(snapshot.stacks):
            self.sample(snapshot, waits, last)  # its request is for present waits, too
            # At first none is known to last, and the screen waits for the names.
            before = self._before if self._before is not None else waits
            lasting = {tid: key for tid, key in waits.items() if before.get(tid) == key}
        if time.monotonic() >= self._next_at and not self._reader.asking:
            self._next_at = time.monotonic() + self._pause_s
            if self._is_wanted(snapshot, lasting):
                self._request(waits)
        self._brief = self._unnamed_locks(snapshot, waits.keys() - lasting.keys())
        self._before = waits
        self._replace_stacks(snapshot, waits)
        self._annotate_past(snapshot)

    def merge_all(
        self, snapshot: Draft, waits: WaitKeys, read_again: Callable[[], WaitKeys]
    ) -> None:
        """Fill in all merged stacks that can be read in time.

        Args:
            snapshot: the draft.
            waits: the waits of this scan.
            read_again: reads the waits.
        """
        if not self._is_wanted(snapshot, waits):
            self._replace_stacks(snapshot, waits)
            self._annotate_past(snapshot)
            return
        deadline = time.monotonic() + _PATIENCE_S
        answer = self._reader.answer(_PATIENCE_S)  # for an earlier request
        if answer is not None:
            self._end_sample(answer)
        lasting = waits
        for _ in range(_TRIES):
            self._request(lasting)
            answer = self._reader.answer(max(0.0, deadline - time.monotonic()))
            if answer is not None:
                now = read_again()
                lasting = {tid: key for tid, key in lasting.items() if now.get(tid) == key}
                self._learn(answer, lasting)
            if not self._is_wanted(snapshot, lasting):
                break
        self._brief = self._unnamed_locks(snapshot, waits.keys() - lasting.keys())
        self._replace_stacks(snapshot, waits)
        self._annotate_past(snapshot)

    # ---- past waits ----

    def sample(self, snapshot: Draft, waits: WaitKeys, last: Snapshot | None = None) -> None:
        """End a sample that has its answer, and begin the next one if it is due.

        Waits in Python code for locks that were idle in the last snapshot are not sampled.

        Args:
            snapshot: the draft.
            waits: as of merge(). Their functions are read with those of the sample.
            last: as of merge().
        """
        if self._has_begun_sample and (answer := self._reader.answer()) is not None:
            self._has_answer = True
            self._end_sample(answer)
        now = time.monotonic()
        is_due = now >= self._next_sample_at and not (self._reader.asking or self._reader.gave_up)
        if self._read_sample is None or not is_due or not self.runs_in(snapshot.stacks):
            return
        idle = {lock.id for lock in last.locks if lock.idle} if last is not None else ()
        self._begin_sample(self._read_sample(), idle, waits)
        if self._shares.taken >= _FIRST_SAMPLES:
            pause_s = _WELL_KNOWN_PAUSE_S if self._shares.are_known_well else _SAMPLE_PAUSE_S
            self._next_sample_at = now + max(pause_s, self._reader.took_s / _SAMPLE_CPU)

    def _begin_sample(
        self, met_waits: Mapping[int, MetWait], idle: Container[int], waits: WaitKeys
    ) -> None:
        sample = {
            tid: wait
            for tid, wait in met_waits.items()
            if wait.lock not in idle and self._runs_python(wait.stack, self._frames(wait.stack))
        }
        unread = [wait for tid, wait in sample.items() if (tid, wait.key) not in self._wait_runs]
        self._shares.begin(sample)
        if any(map(self._shares.is_worth, unread)):
            keys = {tid: wait.key for tid, wait in sample.items()}
            self._request({**waits, **keys}, [wait.kernel_tid for wait in sample.values()])
            self._has_begun_sample = True
        else:
            self._shares.end({}, {}, self._wait_runs)

    def _end_sample(self, answer: Mapping[int, Runs]) -> None:
        if self._has_begun_sample:
            self._has_begun_sample = False
            learned = self._shares.end(answer, self._reader.runs, self._wait_runs)
            self._wait_runs.update(learned)
            self.learned |= bool(learned)

    def _annotate_past(self, snapshot: Draft) -> None:
        """Fill in the shares of past waits, and their merged stacks."""
        stacks = self._shares.annotate(snapshot, self._merged_id)
        if stacks:
            snapshot.stacks = {**snapshot.stacks, **{stack: self.frames(stack) for stack in stacks}}

    # ---- present waits ----

    def _unnamed_locks(self, snapshot: Draft, brief: Set[int]) -> Set[int]:
        """Return the unnamed locks that Python code waits for, but only briefly.

        ``brief``: the threads whose waits may be brief.
        """
        python = self._python_stacks(snapshot) if brief and not self._reader.gave_up else ()
        if not python:
            return frozenset()
        waited = {
            thread.waiting_for.lock
            for thread in snapshot.threads
            if thread.waiting_for is not None and thread.stack in python and thread.tid in brief
        }
        return {
            lock.id
            for lock in (snapshot.locks if waited else ())
            if lock.id in waited and is_unnamed(lock) and self._may_try(lock.id)
        }

    def _may_try(self, lock: int) -> bool:
        tries, tried_at = self._tried.get(lock, (0, 0.0))
        return tries < _MAX_BRIEF or time.monotonic() >= tried_at + _BRIEF_PAUSE_S

    def _is_wanted(self, snapshot: Draft, waits: WaitKeys) -> bool:
        """Return whether Python code is in one of these waits, and the wait was not read yet."""
        if self._reader.gave_up:
            return False
        python = self._python_stacks(snapshot)
        return bool(python) and any(
            thread.stack in python
            and thread.tid in waits
            and (thread.tid, waits[thread.tid]) not in self._wait_runs
            for thread in snapshot.threads
        )

    def _python_stacks(self, snapshot: Draft) -> Set[int]:
        """Return the ids of the stacks with Python code."""
        return {
            stack for stack, frames in snapshot.stacks.items() if self._runs_python(stack, frames)
        }

    def _runs_python(self, stack: int, frames: tuple[Frame, ...]) -> bool:
        """The same stacks come again and again, and most of them never run Python code."""
        if self._without.get(stack) is frames:
            return False
        runs_python = merge_stacks.runs_python(frames)
        if not runs_python:
            self._without[stack] = frames
        return runs_python

    def _request(self, waits: WaitKeys, tids: Sequence[int] = ()) -> None:
        if not self._reader.asking:  # else the answer was read before these waits
            self._requested, self._has_begun_sample = waits, False
            self._reader.ask(tids)

    def _learn(self, answer: Mapping[int, Runs], waits: WaitKeys) -> None:
        for tid, key in waits.items():
            if self._requested.get(tid) != key:
                continue
            wait = tid, key
            self._missed[wait] = self._missed.get(wait, 0) + (tid not in answer)
            if tid in answer or self._missed[wait] >= _TRIES:
                self._wait_runs[wait] = answer.get(tid, ())
                self.learned |= tid in answer

    def _forget(self, waits: WaitKeys) -> None:
        for wait in [wait for wait in self._wait_runs if waits.get(wait[0]) != wait[1]]:
            del self._wait_runs[wait]
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

    def _replace_stacks(self, snapshot: Draft, waits: WaitKeys) -> None:
        if not self._wait_runs:
            return
        #: by tid: id of the native stack, id of the merged stack
        merged: dict[int, tuple[int, int]] = {}
        for thread in snapshot.threads:
            stack = self._merged_stack(thread, waits)
            if stack:
                merged[thread.tid] = thread.stack, stack
        if not merged:
            return
        stacks = {stack: self.frames(stack) for _, stack in merged.values()}
        snapshot.threads = tuple(_replace_stack(thread, merged) for thread in snapshot.threads)
        snapshot.deadlocks = tuple(
            _replace_cycle_stacks(deadlock, merged) for deadlock in snapshot.deadlocks
        )
        snapshot.stacks = {**snapshot.stacks, **stacks}

    def _merged_stack(self, thread: Thread, waits: WaitKeys) -> int:
        if thread.tid not in waits:
            return 0
        wait = thread.tid, waits[thread.tid]
        if wait in self._of_wait:
            return self._of_wait[wait]
        runs = self._wait_runs.get(wait)
        native = thread.stack
        if not runs or not native or native in _IDS:
            return 0
        stack = self._merged_id(native, runs)
        if stack:
            self._of_wait[wait] = stack
        return stack

    def _merged_id(self, native: int, runs: Runs) -> int:
        """Return the id of a native stack with Python functions; 0 if they do not fit."""
        stack = self._ids.get((native, runs), 0)
        if not stack and self._merge(self.frames(native), runs):
            stack = self._ids[native, runs] = self._next_id
            self._merged[stack] = native, runs
            self._next_id += 1
        return stack

    def _merge(self, frames: tuple[Frame, ...], runs: Runs) -> tuple[Frame, ...] | None:
        names_are_read = all(
            frame.function or self._is_final(frame) for frame in frames if is_interpreter(frame)
        )
        if not frames or frames[-1] not in _CUTS:
            return merge_stacks.merge(frames, runs, names_are_read=names_are_read)
        merged = merge_stacks.merge(frames[:-1], runs, False, names_are_read)
        return (*merged, frames[-1]) if merged else None


def _replace_stack(thread: Thread, merged: Mapping[int, tuple[int, int]]) -> Thread:
    if thread.tid not in merged:
        return thread
    _, stack = merged[thread.tid]
    if thread.waiting_for is not None:
        return replace(thread, waiting_for=replace(thread.waiting_for, stack=stack))
    return replace(thread, now=replace(thread.now, stack=stack)) if thread.now else thread


def _replace_cycle_stacks(deadlock: Deadlock, merged: Mapping[int, tuple[int, int]]) -> Deadlock:
    cycle = tuple(
        replace(edge, stack=merged[edge.tid][1])
        if edge.tid in merged and merged[edge.tid][0] == edge.stack
        else edge
        for edge in deadlock.cycle
    )
    return replace(deadlock, cycle=cycle)


def merged_wait_keys(*parts: Mapping[int, tuple[int, int]]) -> WaitKeys:
    """Return several tables of waits as one; for a thread in several tables the last one counts."""
    merged: dict[int, tuple[int, int]] = {}
    for part in parts:
        merged.update(part)
    return merged
