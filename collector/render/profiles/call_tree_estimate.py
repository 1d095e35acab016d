"""Estimates a call tree from caller/callee sums.

Such sums have no whole stacks. They say which value a callee had from this caller. They do not say
from which of the caller's own callers that value came. So the value is divided as the caller's own
value is divided between its branches:

    value of a branch = the callee's value in its caller's group
                        x (value of the branch so far / the caller's own value)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    Node,
    SourceLine,
    Step,
    StepKind,
    Wing,
    most_first,
)

#: The largest branches are followed first. A report of a few thousand functions has more branches
#: than a person can read.
MAX_NODES = 20_000
_MAX_DEPTH = 200


class FunctionRow(Struct, frozen=True):
    """A function as a caller or callee in the group of another function, or as itself."""

    step: Step
    value: float  # with all that the function calls
    own: float
    location: SourceLine | None = None


class FunctionGroup(Struct, frozen=True):
    """One function: its own row, a row for the part of each caller, and a row for each callee."""

    row: FunctionRow
    callers: tuple[FunctionRow, ...] = ()
    callees: tuple[FunctionRow, ...] = ()


FunctionGroups = Mapping[Step, FunctionGroup]


def tree(groups: FunctionGroups) -> tuple[Node, tuple[str, ...]]:
    """Estimate a tree.

    The entries are the functions that no other function calls. If there is none, the entry is the
    function with the largest value.

    Returns:
        The root, as ``call_tree.tree`` returns it, and notes about the estimate, one line each.
    """
    called = {
        row.step for step, group in groups.items() for row in group.callees if row.step != step
    }
    entries = [
        group.row
        for step, group in groups.items()
        if step not in called and all(caller.step == step for caller in group.callers)
    ]
    notes: list[str] = []
    if not entries and groups:
        entries = [max((group.row for group in groups.values()), key=lambda row: row.value)]
        notes.append("every function has a caller: the largest is taken for the entry")
    root = _Estimated(FunctionRow(Step(""), 0.0, 0.0), sum(row.value for row in entries), 0.0, None)
    root.children = [_Estimated(row, row.value, row.own, root) for row in entries]
    notes += _follow(root, groups)
    return root.frozen(), tuple(notes)


def butterfly(groups: FunctionGroups, step: Step) -> Butterfly:
    """Return ``step`` with its callers and callees. These values are not estimates."""
    group = groups.get(step)
    if group is None:
        return Butterfly(step, 0.0)
    row, callees = group.row, _wings(group.callees)
    return Butterfly(
        step,
        row.value,
        _own(step, row.own, callees),
        location=row.location,
        callers=_wings(group.callers),
        callees=callees,
    )


def _wings(rows: Sequence[FunctionRow]) -> tuple[Wing, ...]:
    wings = [Wing(row.step, row.value, location=row.location) for row in rows]
    return tuple(sorted(wings, key=most_first))


def _follow(root: _Estimated, groups: FunctionGroups) -> Iterator[str]:
    """Give the largest branch its children, again and again. Stop when all branches have their
    children, or when the tree is too large. Yield notes."""
    count = len(root.children)
    pending = [(-node.value, n, node) for n, node in enumerate(root.children)]
    heapq.heapify(pending)
    too_deep = False
    while pending:
        _, _, node = heapq.heappop(pending)
        group = groups.get(node.row.step)
        if group is None or not group.callees or node.value <= 0:
            continue
        if node.depth >= _MAX_DEPTH:
            too_deep = True
            continue
        if count + len(group.callees) > MAX_NODES:
            yield f"the tree ends at {MAX_NODES} branches: the smallest are not followed"
            return
        for row in group.callees:
            count += 1
            child = node.follow(row, group.row.value)
            if not child.again:
                heapq.heappush(pending, (-child.value, count, child))
    if too_deep:
        yield f"branches of more than {_MAX_DEPTH} calls are not followed further"


class _Estimated(Struct, eq=False):
    """A node while the tree grows."""

    row: FunctionRow
    value: float
    own: float
    parent: _Estimated | None
    again: bool = False
    children: list[_Estimated] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return sum(1 for _ in self._path())

    def _path(self) -> Iterator[_Estimated]:
        node: _Estimated | None = self
        while node is not None and node.parent is not None:
            yield node
            node = node.parent

    def follow(self, row: FunctionRow, whole: float) -> _Estimated:
        """Add a callee of this branch.

        Args:
            row: The callee in the group of its caller.
            whole: The value of the caller, of which this branch has a part.
        """
        share = self.value / whole if whole > 0 else 0.0
        again = any(node.row.step == row.step for node in self._path())
        child = _Estimated(row, row.value * share, row.own * share, self, again)
        self.children.append(child)
        return child

    def frozen(self) -> Node:
        children = tuple(sorted((child.frozen() for child in self.children), key=most_first))
        return Node(
            self.row.step,
            self.value,
            _own(self.row.step, self.own, children),
            location=self.row.location,
            children=children,
            again=self.again,
        )


def _own(step: Step, own: float, callees: Sequence[Node | Wing]) -> float:
    """Return the own value of a node: the caller of a lock waited for the lock itself."""
    locks = sum(callee.value for callee in callees if callee.step.kind is StepKind.LOCK)
    return 0.0 if step.kind is StepKind.LOCK else own + locks
