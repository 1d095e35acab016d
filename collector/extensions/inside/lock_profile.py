"""The code that runs inside a lock, as a profile: stacks of threads that held the lock."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from locktop.collector.extensions.inside.inside_tree import FunctionShare, inside, stack_branches
from locktop.collector.extensions.inside.model import InsideStack, inside_of, profile_of
from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.profiles import call_tree
from locktop.collector.render.profiles.call_tree import Branch, Butterfly, Node, Step
from locktop.collector.render.profiles.profile import Weight, WeightUnit
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.units import counted

HELD = Weight("held", "time held", WeightUnit.SECONDS)
ON_CPU = Weight("on_cpu", "time held on CPU", WeightUnit.SECONDS)
ASLEEP = Weight("asleep", "time held asleep", WeightUnit.SECONDS)
SAMPLES = Weight("samples", "samples", WeightUnit.COUNT)


class InsideLockProfile:
    """The samples of one lock. A sample stands for ``period_s`` seconds of a hold."""

    name = "inside"
    weights = (HELD, ON_CPU, ASLEEP, SAMPLES)
    estimate = False

    def __init__(self, snapshot: Snapshot, lock: Lock) -> None:
        """``lock``: of the snapshot; without samples the profile is empty."""
        self.snapshot = snapshot
        self.lock = lock
        self.process = snapshot.process
        self._profile, self._inside = profile_of(snapshot), inside_of(snapshot, lock.id)
        self._period_s = self._profile.period_s if self._profile is not None else 0.0

    @property
    def title(self) -> str:
        return f"inside {name_with_kind(self.lock.kind, self.lock.name)}, {self.snapshot.taken_at}"

    def functions(self, weight: str) -> tuple[FunctionShare, ...]:
        """Return the functions of all samples that the weight counts, the largest own value first.

        The values are samples.
        """
        return inside(self.snapshot, self._stacks(weight)).functions

    def tree(self, weight: str) -> Node:
        """See Profile. The entry functions of the tree are those that took the lock."""
        return call_tree.tree(self._branches(weight))

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        return call_tree.butterfly(self._branches(weight), step)

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        return call_tree.butterflies(self._branches(weight))

    def notes(self, weight: str) -> tuple[str, ...]:
        profile = self._profile
        if profile is None or not profile.lost:
            return self.snapshot.notes
        return (f"{counted(profile.lost, 'sample')} lost", *self.snapshot.notes)

    def _branches(self, weight: str) -> list[Branch]:
        each = 1.0 if weight == SAMPLES.name else self._period_s
        return [
            replace(branch, value=branch.value * each)
            for _, branch in stack_branches(self.snapshot, self._stacks(weight))
        ]

    def _stacks(self, weight: str) -> tuple[InsideStack, ...]:
        """Return the stacks that the weight counts."""
        stacks = self._inside.stacks if self._inside is not None else ()
        if weight in (HELD.name, SAMPLES.name):
            return stacks
        return tuple(stack for stack in stacks if stack.on_cpu is (weight == ON_CPU.name))
