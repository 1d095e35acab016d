"""pthread_once and call_once of glibc, from outside: who waits for the routine, and who runs it.

The control is one word that any program may have anywhere: what tells is the function in which a
thread sleeps. Who runs the routine is written nowhere but on that thread's stack: only of one that
sleeps, and whose stack could be followed up to the call of the routine, it is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING

from locktop.collector.linux import process_memory
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.sampling.sampler import Sample

if TYPE_CHECKING:
    from locktop.collector.unwind.x86_64.pthread_once import OnceCode

#: By address of the control: the tid of the thread that runs its routine, and in which sleep.
Runners = Mapping[int, tuple[int, int]]

#: What a control is while its routine runs, in a process that no fork has made.
_NEVER_FORKED = 1
_AGAIN_S = 10.0


class OnceWaits:
    """Of one process."""

    def __init__(self, pid: int, stacks: NativeStacks) -> None:
        self._pid = pid
        self._stacks = stacks
        self._at: dict[int, OnceCode | None] = {}  # by where a thread sleeps
        self._again: dict[int, float] = {}  # when one that is none is asked again
        self._runs: dict[int, tuple[int, Set[int]]] = {}  # by tid: in which sleep, controls

    def is_one(self, pc: int) -> bool:
        """Tell whether a thread that sleeps there waits for a routine that runs once."""
        now = time.monotonic()
        if self._at.get(pc) is None and now >= self._again.get(pc, 0.0):
            self._again[pc] = now + _AGAIN_S  # it may be for what we lacked, or was not mapped yet
            unwinder = self._stacks.unwinder()
            self._at[pc] = unwinder.once(pc) if unwinder is not None else None
        return self._at[pc] is not None

    def runners(
        self,
        controls: Mapping[int, int],
        samples: Iterable[Sample],
        still_sleeps: Callable[[Sample], bool],
        budget_s: float,
    ) -> Runners:
        """Return who runs the routines of ``controls``, by whose address their value is given, as
        far as that is certain. Threads whose stack there is no time for are asked the next time."""
        if not controls:
            return {}
        until = time.monotonic() + budget_s
        before, self._runs = self._runs, {}
        found: dict[int, list[tuple[int, int]]] = {}
        for sample in samples:
            if sample.call is None:
                continue
            known = before.get(sample.tid)
            if known is None or known[0] != sample.seq:
                if time.monotonic() > until:
                    continue
                known = sample.seq, self._run_by(sample, still_sleeps)
            self._runs[sample.tid] = known
            for control in known[1] & controls.keys():
                # A thread that forked in a routine is in it in the child too, where others begin
                # it anew: the fork is counted in the value, and the thread is the child's first.
                if controls[control] == _NEVER_FORKED or sample.kernel_tid != self._pid:
                    found.setdefault(control, []).append((sample.tid, sample.seq))
        return {control: runs[0] for control, runs in found.items() if len(runs) == 1}

    def _run_by(self, sample: Sample, still_sleeps: Callable[[Sample], bool]) -> Set[int]:
        """The controls of the routines that a thread is in."""
        unwinder = self._stacks.unwinder()
        unwound = unwinder.blocked(sample.kernel_tid) if unwinder is not None else None
        if unwound is None:
            return frozenset()
        slots = {
            returns: slot
            for code in self._at.values()
            if code is not None
            for returns, slot in code.slots.items()
        }
        assert sample.call is not None, "it was asked for"
        words = [
            (sample.call.sp + height + slots[address], 8)
            for address, height in zip(unwound.addresses[1:], unwound.heights[1:], strict=True)
            if address in slots
        ]
        read = process_memory.read_many(self._pid, words) if words else []
        if not still_sleeps(sample):
            return frozenset()
        return frozenset(int.from_bytes(word, "little") for word in read)
