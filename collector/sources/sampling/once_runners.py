"""glibc's pthread_once and call_once in samples: the waiters, and the thread that runs the routine.

The control is one word that any program may have anywhere. Only the function in which a thread
sleeps identifies the wait. Only the runner's own stack shows which thread runs the routine. So the
runner is known only if it sleeps. Its stack must also unwind up to the call of the routine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING

from locktop.collector.linux import process_memory
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.sampling.sampler import Sample

if TYPE_CHECKING:
    from locktop.collector.symbols.unwind.x86_64.pthread_once import OnceCode

#: By address of the control: the tid of the thread that runs the routine, and the number of its
#: sleep.
Runners = Mapping[int, tuple[int, int]]

#: The value of a control while its routine runs, in a process that is no child of a fork.
_NEVER_FORKED = 1
_AGAIN_S = 10.0


class OnceRunnerProbe:
    """The once routines of one process."""

    def __init__(self, pid: int, stacks: NativeStacks) -> None:
        self._pid = pid
        self._stacks = stacks
        self._code_by_pc: dict[int, OnceCode | None] = {}  # by pc of the sleep
        self._again: dict[int, float] = {}  # by pc: when to check again whether it is a once wait
        #: by tid: number of the sleep, controls
        self._routines: dict[int, tuple[int, Set[int]]] = {}

    def is_once_wait(self, pc: int) -> bool:
        """Return whether a thread that sleeps at ``pc`` waits for a once routine."""
        now = time.monotonic()
        if self._code_by_pc.get(pc) is None and now >= self._again.get(pc, 0.0):
            # the check may have failed for lack of resources, or the code was not mapped yet
            self._again[pc] = now + _AGAIN_S
            unwinder = self._stacks.unwinder()
            self._code_by_pc[pc] = unwinder.once_code(pc) if unwinder is not None else None
        return self._code_by_pc[pc] is not None

    def runners(
        self,
        controls: Mapping[int, int],
        samples: Iterable[Sample],
        still_sleeps: Callable[[Sample], bool],
        budget_s: float,
    ) -> Runners:
        """Return the threads that certainly run the routines of ``controls``.

        Args:
            controls: the values of the controls, by address.
            samples: the threads.
            still_sleeps: whether a thread has slept since its sample.
            budget_s: seconds for new stacks; the next call takes the remaining threads.
        """
        if not controls:
            return {}
        until = time.monotonic() + budget_s
        before, self._routines = self._routines, {}
        runs_by_control: dict[int, list[tuple[int, int]]] = {}
        for sample in samples:
            if sample.call is None:
                continue
            routines = before.get(sample.tid)
            if routines is None or routines[0] != sample.seq:
                if time.monotonic() > until:
                    continue
                routines = sample.seq, self._routines_of(sample, still_sleeps)
            self._routines[sample.tid] = routines
            for control in routines[1] & controls.keys():
                # A child's first thread that forked in a routine is still in the routine, while
                # other threads begin it anew. The value counts the forks, so the two cases differ.
                if controls[control] == _NEVER_FORKED or sample.kernel_tid != self._pid:
                    runs_by_control.setdefault(control, []).append((sample.tid, sample.seq))
        return {control: runs[0] for control, runs in runs_by_control.items() if len(runs) == 1}

    def _routines_of(self, sample: Sample, still_sleeps: Callable[[Sample], bool]) -> Set[int]:
        """Return the controls of the routines that a thread is in."""
        unwinder = self._stacks.unwinder()
        unwound = unwinder.blocked_stack(sample.kernel_tid) if unwinder is not None else None
        if unwound is None:
            return frozenset()
        slots = {
            returns: slot
            for code in self._code_by_pc.values()
            if code is not None
            for returns, slot in code.slots.items()
        }
        assert sample.call is not None, "the caller queried the call"
        words = [
            (sample.call.sp + height + slots[address], 8)
            for address, height in zip(unwound.addresses[1:], unwound.heights[1:], strict=True)
            if address in slots
        ]
        read = process_memory.read_many(self._pid, words) if words else []
        if not still_sleeps(sample):
            return frozenset()
        return frozenset(int.from_bytes(word, "little") for word in read)
