"""The Python functions of past waits, as shares of native stacks.

The record of a wait has a native stack alone, and many Python functions share one native stack. A
sample is the waits of one moment, whose functions a reader then gets. A wait counts with its
functions only if its thread has slept from that moment until after the reading. A shorter wait
counts as not read. So functions with short waits get no more than their share, and no other
functions get it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.model import Draft, Lock, PythonShare, WaitStack
from locktop.collector.symbols.python.frame_reader import Runs

#: Python stacks of one native stack that are told apart. The others count as not read.
_MAX_PYTHON_STACKS = 32
#: Pairs of a lock and a native stack. The oldest ones are forgotten first.
_MAX_ENTRIES = 1024
#: After so many samples without functions, all waits of a stack seem to be too short to read.
_MAX_IN_VAIN = 30
#: Samples that tell the shares well: one standard deviation of a share is 3.5 % at most.
_ENOUGH = 200

WaitKey = tuple[int, int]  # life of a thread, number of its wait
ThreadWait = tuple[int, WaitKey]  # tid first
#: Given a native stack and Python functions, returns the id of both; 0: they do not fit.
MergedId = Callable[[int, Runs], int]


class MetWait(NamedTuple):
    """A wait that a sample met."""

    key: WaitKey
    lock: int
    stack: int  # the native one
    kernel_tid: int
    runs: int  # how often its thread had been put on a CPU; 0: not known to sleep in the wait


class _Count(Struct):
    samples: int = 0
    waits: int = 0

    def add(self, is_new_wait: bool) -> None:
        self.samples += 1
        self.waits += is_new_wait


class _Entry(Struct):
    """The samples of the waits for one lock from one native stack."""

    of_runs: dict[Runs, _Count] = field(default_factory=dict)
    not_read: _Count = field(default_factory=_Count)

    @property
    def samples(self) -> int:
        return self.not_read.samples + sum(count.samples for count in self.of_runs.values())

    def count_of(self, runs: Runs) -> _Count:
        count = self.of_runs.get(runs)
        if count is None and runs and len(self.of_runs) < _MAX_PYTHON_STACKS:
            count = self.of_runs[runs] = _Count()
        return count or self.not_read


class PythonShares:
    """Counts the samples of one process."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], _Entry] = {}  # by lock and native stack
        self._sample: Mapping[int, MetWait] = {}  # by tid, until the answer is there
        #: The waits of the last sample with their functions, by tid.
        self._last: dict[int, tuple[WaitKey, Runs]] = {}
        self._last_keys: Set[tuple[int, int]] = frozenset()  # locks and native stacks of the last
        self.taken = 0  # number of samples

    def begin(self, sample: Mapping[int, MetWait]) -> None:
        """Take over a sample. A sample before that had no answer is dropped."""
        self._sample = sample

    def end(
        self,
        answer: Mapping[int, Runs],
        runs_after: Mapping[int, int],
        known_runs: Mapping[ThreadWait, Runs],
    ) -> dict[ThreadWait, Runs]:
        """Count the waits of the sample.

        Args:
            answer: the Python functions by tid, read after the begin of the sample.
            runs_after: by kernel tid, how often each thread had been put on a CPU after that.
            known_runs: the functions of waits that were read before.

        Returns:
            the functions of the waits in the sample that the answer has.
        """
        sample, self._sample = self._sample, {}
        if not sample:
            return {}
        learned: dict[ThreadWait, Runs] = {}
        last, self._last = self._last, {}
        for tid, wait in sample.items():
            runs = known_runs.get((tid, wait.key), ())
            if not runs and wait.runs and runs_after.get(wait.kernel_tid) == wait.runs:
                runs = answer.get(tid, ())
                if runs:
                    learned[tid, wait.key] = runs
            entry = self._entries.setdefault((wait.lock, wait.stack), _Entry())
            entry.count_of(runs).add(last.get(tid) != (wait.key, runs))
            self._last[tid] = wait.key, runs
        self._last_keys = {(wait.lock, wait.stack) for wait in sample.values()}
        self.taken += 1
        while len(self._entries) > _MAX_ENTRIES:
            del self._entries[next(iter(self._entries))]
        return learned

    def is_worth(self, wait: MetWait) -> bool:
        """Return whether a reading may tell more about waits like this one."""
        entry = self._entries.get((wait.lock, wait.stack))
        return entry is None or bool(entry.of_runs) or entry.samples < _MAX_IN_VAIN

    @property
    def are_known_well(self) -> bool:
        """Whether the shares of all waits in the last sample have enough samples."""
        entries = [self._entries.get(key) for key in self._last_keys]
        return bool(entries) and all(
            entry is not None and entry.samples >= _ENOUGH for entry in entries
        )

    def annotate(self, snapshot: Draft, merged: MergedId) -> set[int]:
        """Fill in the shares of the wait stacks, and forget the locks that are gone.

        Args:
            snapshot: the draft.
            merged: returns the id of a native stack with Python functions; 0 if they do not fit.

        Returns:
            the ids of the merged stacks.
        """
        if not self._entries:
            return set()
        sampled = {lock for lock, _ in self._entries}
        locks = {lock.id: lock for lock in snapshot.locks if lock.id in sampled}
        for key in [key for key in self._entries if key[0] not in locks]:
            del self._entries[key]
        annotated = {id_: self._add_shares(lock, merged) for id_, lock in locks.items()}
        snapshot.locks = tuple([annotated.get(lock.id, lock) for lock in snapshot.locks])
        stacks = [waited for lock in annotated.values() for waited in lock.wait_stacks]
        return {share.stack for waited in stacks for share in waited.python} - {
            waited.stack for waited in stacks
        }

    def _add_shares(self, lock: Lock, merged: MergedId) -> Lock:
        stacks = tuple([self._add_share(lock.id, waited, merged) for waited in lock.wait_stacks])
        return replace(lock, wait_stacks=stacks)

    def _add_share(self, lock: int, waited: WaitStack, merged: MergedId) -> WaitStack:
        entry = self._entries.get((lock, waited.stack))
        if entry is None or not entry.of_runs:
            return waited
        return replace(waited, python=_shares(waited.stack, entry, merged))


def _shares(native: int, entry: _Entry, merged: MergedId) -> tuple[PythonShare, ...]:
    sums: dict[int, _Count] = {}
    counts = [(merged(native, runs) or native, count) for runs, count in entry.of_runs.items()]
    for stack, count in (*counts, (native, entry.not_read)):
        sum_of_stack = sums.setdefault(stack, _Count())
        sum_of_stack.samples += count.samples
        sum_of_stack.waits += count.waits
    shares = [
        PythonShare(stack=stack, samples=count.samples, waits=count.waits)
        for stack, count in sums.items()
        if count.samples
    ]
    return tuple(sorted(shares, key=lambda share: (-share.samples, share.stack)))
