"""Profiles with a call tree and a butterfly, made by hand."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    Node,
    SourceLine,
    Step,
    StepKind,
    Wing,
)
from locktop.collector.render.profiles.profile import Weight, WeightUnit

LOCK = Step("mutex g_lock", kind=StepKind.LOCK)
HOLDER = Step("worker 12", kind=StepKind.THREAD)
GET, PUT, LOG = Step("get", "store"), Step("put", "store"), Step("store+0x1c", "store")
COUNT, REPORT = Weight("waits", "waits", WeightUnit.COUNT), Weight("x", "x", WeightUnit.REPORT)


def branch(step: Step, value: float, *children: Node, **more: object) -> Node:
    made = Node(step, value, value if step.kind is StepKind.FUNCTION else 0.0, children=children)
    return made._replace(**more)  # type: ignore[arg-type]


ROOT = branch(
    Step(""),
    2000.0,
    branch(
        Step("main"),
        1990.0,
        branch(GET, 1500.25, branch(LOCK, 1500.25), location=SourceLine("C:\\src\\a.c", 7)),
        branch(PUT, 480.5, branch(HOLDER, 480.5), location=SourceLine("/src/a.c", 0), inlined=True),
        branch(LOG, 12.25, again=True),
        branch(Step("rare"), 1.0),
        own=0.0,
    ),
    branch(Step("few"), 10.0),
    branch(Step("fewer"), 0.5),
    branch(Step("pool"), 0.0, branch(LOCK, 0.0, idle=40.0), idle=40.0, own_idle=40.0),
    idle=40.0,
)
WINGS = (Wing(PUT, 480.5, inlined=True), Wing(LOG, 0.0, idle=40.0), Wing(LOCK, 0.0))


class MadeProfile:
    """A profile with one tree and one butterfly, made by hand."""

    name = "callers"
    title = "store 4711"
    weights = (COUNT, REPORT)

    def __init__(self, root: Node, middle: Butterfly, estimate: bool = False) -> None:
        self._root, self._middle, self.estimate = root, middle, estimate
        self.process = replace(records.snapshot((), ()).process, pid=0)

    def tree(self, weight: str) -> Node:
        return self._root

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        return self._middle

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        return {self._middle.step: self._middle}

    def notes(self, weight: str) -> tuple[str, ...]:
        return ("a note",) * self.estimate


LEAF = Butterfly(GET, 0.0, idle=40.0, own_idle=40.0)
MIDDLE = Butterfly(GET, 1500.25, 20.25, callers=WINGS, callees=(Wing(LOCK, 1480.0),))
