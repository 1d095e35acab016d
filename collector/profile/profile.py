"""What can be shown by callers: a snapshot, or a report of another profiler, behind one face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.export import snapshot_reader
from locktop.collector.format import units
from locktop.collector.model import Process, Snapshot
from locktop.collector.profile import call_tree, call_tree_estimate, vsperf_report
from locktop.collector.profile.call_tree import Butterfly, Node, Step
from locktop.collector.profile.vsperf_report import Report

#: Bytes of a file that is read as a whole.
LARGEST = 1 << 30
_MAX_NAMED = 5
_WITHOUT_STACKS = ("dormant", "counting")


class Unit(StrEnum):
    """What a value counts."""

    SECONDS = "s"
    COUNT = "count"
    #: As the report has it, which does not say.
    REPORT = ""


@dataclass(frozen=True, slots=True)
class Weight:
    """What the branches are weighed by."""

    name: str  # as --weight takes it
    says: str
    unit: Unit


class Profile(Protocol):
    """Something with a tree of calls and a butterfly of each function."""

    @property
    def title(self) -> str:
        """What it is of, in one line."""

    @property
    def process(self) -> Process:
        """The process it is of, as far as known."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Those there are, what it shows first first."""

    @property
    def estimate(self) -> bool:
        """Whether the values of the tree are estimated; those of a butterfly never are."""

    def tree(self, weight: str) -> Node:
        """The tree, see callers.tree; ``weight`` is the name of one of ``weights``."""

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        """``step`` with its callers and callees; of nothing where it is not there."""

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        """All of them."""

    def notes(self, weight: str) -> tuple[str, ...]:
        """One line each, what there is to know."""


SNAPSHOT_WEIGHTS = (
    Weight(call_tree.WAIT, "time waited", Unit.SECONDS),
    Weight(call_tree.COUNT, "waits", Unit.COUNT),
    Weight(call_tree.BLAME, "time others waited for a holder", Unit.SECONDS),
)


class SnapshotProfile:
    """The waits of one snapshot, with their whole stacks."""

    weights = SNAPSHOT_WEIGHTS
    estimate = False

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.process = snapshot.process

    @property
    def title(self) -> str:
        """See Profile."""
        process = self.process
        return f"{process.comm} {process.pid} on {self.snapshot.host}, {self.snapshot.taken_at}"

    def tree(self, weight: str) -> Node:
        """See Profile."""
        return call_tree.tree(call_tree.branches(self.snapshot, weight))

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        """See Profile."""
        return call_tree.butterfly(call_tree.branches(self.snapshot, weight), step)

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        """See Profile."""
        return call_tree.butterflies(call_tree.branches(self.snapshot, weight))

    def notes(self, weight: str) -> tuple[str, ...]:
        """See Profile."""
        blamed = any(lock.blame for lock in self.snapshot.locks)
        said = []
        stuck = {
            edge.tid
            for deadlock in self.snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
        }
        if stuck:
            said.append(f"{len(stuck)} thread{'s' * (len(stuck) > 1)} deadlocked")
        if weight == call_tree.BLAME and not blamed:
            said.append("this snapshot has no blame")
        if self.snapshot.level in _WITHOUT_STACKS:
            said.append(f"no stacks are taken at level {self.snapshot.level}")
        return (*said, *self.snapshot.notes)


class ReportProfile:
    """A caller/callee report, which has no whole stacks."""

    estimate = True

    def __init__(self, report: Report, name: str) -> None:
        """``name``: of its file."""
        self._report = report
        self._name = name
        units = {"samples": Unit.COUNT, "contentions": Unit.COUNT}
        self.weights = tuple(
            Weight(
                one.name,
                one.says,
                Unit.REPORT if one.says.startswith("%") else units.get(one.name, Unit.REPORT),
            )
            for one in report.measures
        )
        self.process = Process(0, "", (), "", "")
        self._trees: dict[str, tuple[Node, tuple[str, ...]]] = {}

    @property
    def title(self) -> str:
        """See Profile."""
        of = f" of {', '.join(self._report.processes[:3])}" if self._report.processes else ""
        return f"{self._name}, a caller/callee report{of}"

    def tree(self, weight: str) -> Node:
        """See Profile."""
        return self._tree(weight)[0]

    def _tree(self, weight: str) -> tuple[Node, tuple[str, ...]]:
        if weight not in self._trees:
            self._trees[weight] = call_tree_estimate.tree(self._report.groups[weight])
        return self._trees[weight]

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        """See Profile."""
        return call_tree_estimate.butterfly(self._report.groups[weight], step)

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        """See Profile."""
        groups = self._report.groups[weight]
        return {step: call_tree_estimate.butterfly(groups, step) for step in groups}

    def notes(self, weight: str) -> tuple[str, ...]:
        """See Profile."""
        return (*self._tree(weight)[1], *self._report.notes)


def read(path: str, rules: Rules | None = None) -> Profile:
    """Return what a file has: a snapshot, as JSON or msgpack, or a caller/callee report. ``rules``
    tell the waits of a snapshot apart, without them those that come with locktop.

    Raises LocktopError when it has neither, OSError when it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise LocktopError(f"{path} is larger than {units.size(LARGEST)}")
    if snapshot_reader.is_one(data):
        return SnapshotProfile(snapshot_reader.parse(data, path, rules))
    return ReportProfile(vsperf_report.parse(data, path), path)


def weight_of(weights: Sequence[Weight], name: str | None) -> Weight:
    """Return the weight of that name, the first without one. Raises LocktopError."""
    for weight in weights:
        if name is None or weight.name == name:
            return weight
    there_are = ", ".join(weight.name for weight in weights)
    raise LocktopError(f"there is no weight {name!r} in it; there are {there_are}")


def step_named(root: Node, name: str) -> Step:
    """Return the function, lock or thread of a tree that is called so, or the only one that has
    ``name`` in its name. Raises LocktopError."""
    found = call_tree.steps(root)
    fitting = sorted(step for step in found if step.name == name)
    fitting = fitting or sorted(step for step in found if name in step.name)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise LocktopError(f"no function is called {name!r}, and none has that in its name")
    named = ", ".join(f"{step.name} [{step.module}]" for step in fitting[:_MAX_NAMED])
    more = f" and {len(fitting) - _MAX_NAMED} more" if len(fitting) > _MAX_NAMED else ""
    raise LocktopError(f"{len(fitting)} functions are called like {name!r}: {named}{more}")
