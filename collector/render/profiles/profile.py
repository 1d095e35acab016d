"""Profiles: sources of call trees. A profile is a snapshot or a report of another profiler.

``export/open_profile.py`` opens a file as a profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from locktop.collector.analysis import divided_waits
from locktop.collector.errors import LocktopError
from locktop.collector.model import Process, Snapshot
from locktop.collector.render.profiles import call_tree, call_tree_estimate
from locktop.collector.render.profiles.call_tree import Butterfly, Node, Step
from locktop.collector.render.profiles.vsperf_report import CallerCalleeReport, Measure
from locktop.collector.render.words import python_shares
from locktop.collector.symbols.python import merge_stacks

_MAX_NAMED = 5
#: With so many waits whose functions are known, an estimate is good enough to begin with.
_FEW_READ = 30
_WITHOUT_STACKS = ("dormant", "counting")


class WeightUnit(StrEnum):
    """The unit of a value."""

    SECONDS = "s"
    COUNT = "count"
    #: The unit of the report, which does not name its unit.
    REPORT = ""


class Weight(Struct, frozen=True):
    """A measure that gives the branches their values."""

    name: str  # as --weight takes it
    says: str
    unit: WeightUnit


class Profile(Protocol):
    """A source of call trees and butterflies."""

    @property
    def name(self) -> str:
        """The command that shows such a profile."""

    @property
    def title(self) -> str:
        """Names the source, in one line."""

    @property
    def process(self) -> Process:
        """The process of the profile, as far as known."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The weights of the profile; the first is the default."""

    @property
    def estimate(self) -> bool:
        """Whether the values of the tree are estimates. The values of a butterfly never are."""

    def tree(self, weight: str) -> Node:
        """Return the tree, see ``call_tree.tree``. ``weight``: the name of one of ``weights``."""

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        """Return ``step`` with its callers and callees, which may be none."""

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        """Return the butterflies of all steps."""

    def notes(self, weight: str) -> tuple[str, ...]:
        """Return notes for the user, one line each."""


SNAPSHOT_WEIGHTS = (
    Weight(call_tree.WAIT, "time waited", WeightUnit.SECONDS),
    Weight(call_tree.COUNT, "waits", WeightUnit.COUNT),
    Weight(call_tree.BLAME, "time others waited for a holder", WeightUnit.SECONDS),
)


class SnapshotProfile:
    """The waits of one snapshot, with whole stacks."""

    name = "callers"
    weights = SNAPSHOT_WEIGHTS
    estimate = False

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.process = snapshot.process

    @property
    def title(self) -> str:
        process = self.process
        return f"{process.comm} {process.pid} on {self.snapshot.host}, {self.snapshot.taken_at}"

    def tree(self, weight: str) -> Node:
        return call_tree.tree(call_tree.branches(self.snapshot, weight))

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        return call_tree.butterfly(call_tree.branches(self.snapshot, weight), step)

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        return call_tree.butterflies(call_tree.branches(self.snapshot, weight))

    def notes(self, weight: str) -> tuple[str, ...]:
        blamed = any(lock.blame for lock in self.snapshot.locks)
        notes = []
        stuck = {
            edge.tid
            for deadlock in self.snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
        }
        if stuck:
            notes.append(f"{len(stuck)} thread{'s' * (len(stuck) > 1)} deadlocked")
        if weight == call_tree.BLAME and not blamed:
            notes.append("this snapshot has no blame")
        if self.snapshot.level in _WITHOUT_STACKS:
            notes.append(f"no stacks are taken at level {self.snapshot.level}")
        divided = divided_waits.basis(self.snapshot.locks) if weight == call_tree.WAIT else 0
        if divided:
            notes.append(python_shares.note(divided))
        return (*notes, *self.snapshot.notes)


class ReportProfile:
    """A caller/callee report, which has no whole stacks."""

    name = "callers"
    estimate = True

    def __init__(self, report: CallerCalleeReport, name: str) -> None:
        """``name``: the name of the file."""
        self._report = report
        self._name = name
        self.weights = tuple(
            Weight(measure.name, measure.says, _unit(measure)) for measure in report.measures
        )
        self.process = Process(pid=0, comm="", cmdline=(), exe="", started_at="")
        self._trees: dict[str, tuple[Node, tuple[str, ...]]] = {}

    @property
    def title(self) -> str:
        processes = f" of {', '.join(self._report.processes[:3])}" if self._report.processes else ""
        return f"{self._name}, a caller/callee report{processes}"

    def tree(self, weight: str) -> Node:
        return self._tree(weight)[0]

    def _tree(self, weight: str) -> tuple[Node, tuple[str, ...]]:
        if weight not in self._trees:
            self._trees[weight] = call_tree_estimate.tree(self._report.groups[weight])
        return self._trees[weight]

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        return call_tree_estimate.butterfly(self._report.groups[weight], step)

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        groups = self._report.groups[weight]
        return {step: call_tree_estimate.butterfly(groups, step) for step in groups}

    def notes(self, weight: str) -> tuple[str, ...]:
        return (*self._tree(weight)[1], *self._report.notes)


def may_learn_functions(snapshot: Snapshot) -> bool:
    """Return whether further scans may show Python functions of past waits.

    The library must be loaded, and the stack with most contention be in Python with few samples.
    """
    if snapshot.is_sampled or snapshot.ended:
        return False
    stacks = [entry for lock in snapshot.locks for entry in lock.wait_stacks if not entry.idle]
    most = max(stacks, key=lambda entry: entry.wait_s, default=None)
    if most is None or divided_waits.read_waits(most) >= _FEW_READ:
        return False
    return merge_stacks.runs_python(snapshot.stacks.get(most.stack, ()))


def _unit(measure: Measure) -> WeightUnit:
    is_count = measure.name in ("samples", "contentions") and not measure.says.startswith("%")
    return WeightUnit.COUNT if is_count else WeightUnit.REPORT


def weight_of(weights: Sequence[Weight], name: str | None) -> Weight:
    """Return the weight with this name, or the first weight for None.

    Raises:
        LocktopError: There is no such weight.
    """
    for weight in weights:
        if name is None or weight.name == name:
            return weight
    there_are = ", ".join(weight.name for weight in weights)
    raise LocktopError(f"there is no weight {name!r} in it; there are {there_are}")


def step_named(root: Node, name: str) -> Step:
    """Return the function, lock or thread with this name, or the only one whose name contains it.

    Raises:
        LocktopError: No step matches, or more than one.
    """
    known_steps = call_tree.steps(root)
    fitting = sorted(step for step in known_steps if step.name == name)
    fitting = fitting or sorted(step for step in known_steps if name in step.name)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise LocktopError(f"no function is called {name!r}, and none has that in its name")
    named = ", ".join(f"{step.name} [{step.module}]" for step in fitting[:_MAX_NAMED])
    more = f" and {len(fitting) - _MAX_NAMED} more" if len(fitting) > _MAX_NAMED else ""
    raise LocktopError(f"{len(fitting)} functions are called like {name!r}: {named}{more}")
