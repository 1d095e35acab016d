"""The waits for Python's interpreter lock (GIL) in samples.

Such a wait is a series of calls of 5 ms, between which the thread is awake. A thread leaves the
wait only with the GIL. The interpreter counts how often the GIL went from one thread to another.
While the number stays the same, nobody but the last holder had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from locktop.collector.linux.futex import FutexWait
from locktop.collector.model.kinds import INTERPRETER_LOCK_KINDS
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.symbols.python.gil import GilReading, is_at

#: The GIL is read after each sample. A wait goes on if the GIL is the same before the sample that
#: showed the wait, and after the next one. So three readings must be equal.
_MIN_REPEATS = 2


class _GilTurn(NamedTuple):
    """The time in which one thread alone has the GIL."""

    reading: GilReading
    repeats: int  # readings that were the same as the first one


class GilWaits:
    """Tells the waits for a GIL that go on from those that are over."""

    def __init__(self, read: Callable[[int], GilReading | None] = lambda address: None) -> None:
        """``read``: returns the GIL at the address of a condition, None if it is no GIL."""
        self._read = read
        self._turns: dict[int, _GilTurn] = {}  # by address of the condition

    def note_turns(self, waits: Iterable[SampledWait]) -> None:
        """Read the GILs after a sample.

        Args:
            waits: those of the sample before.
        """
        before, self._turns = self._turns, {}
        awaited = {wait.sync_object.address for wait in waits if _may_be_for_gil(wait)}
        for address in awaited | before.keys():
            reading = self._read(address)
            if reading is not None:
                turn = before.get(address)
                is_same = turn is not None and turn.reading == reading
                self._turns[address] = _GilTurn(
                    reading, turn.repeats + 1 if turn and is_same else 0
                )

    def goes_on(self, former: SampledWait, sample: Sample, call: FutexWait | None) -> bool:
        """Return whether a thread still waits for the GIL for which it waited in the last sample.

        Args:
            former: the wait of the last sample.
            sample: the thread in the new one.
            call: the futex call in which it sleeps now; None: it is awake, or in another call.
        """
        turn = self._turns.get(former.sync_object.address)
        if turn is None or turn.repeats < _MIN_REPEATS or not _may_be_for_gil(former):
            return False
        if sample.life != former.life or sample.tid == turn.reading.holder:
            return False
        return sample.call is None or (
            call is not None and is_at(call.address, turn.reading.condition)
        )


def _may_be_for_gil(wait: SampledWait) -> bool:
    return wait.futex.timed and wait.sync_object.kind in INTERPRETER_LOCK_KINDS
