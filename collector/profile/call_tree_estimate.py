"""A tree of calls out of caller/callee sums, which know of each function only its neighbours.

Whole stacks are not in such sums: what a callee had from this caller is known, but not from which
of the caller's own callers that came. So it is shared out as the caller's own value was:

    value of a branch = the callee's value in its caller's group
                        x (value of the branch so far / the caller's own value)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from locktop.collector.profile.call_tree import Butterfly, Node, Part, Place, Step, Wing, most_first

#: The largest branches are followed first; a report of a few thousand functions has more branches
#: than anybody could look at.
MAX_NODES = 20_000
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A function in the group of another one, or its own row there."""

    step: Step
    value: float  # with all below it
    own: float
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """One function: its own row, what each caller had from it, what it had from each callee."""

    row: Row
    callers: tuple[Row, ...] = ()
    callees: tuple[Row, ...] = ()


Groups = Mapping[Step, Group]


def tree(groups: Groups) -> tuple[Node, tuple[str, ...]]:
    """Return the tree as callers.tree does, and what there is to know of it, one line each.

    The entries are the functions that nobody calls but they themselves; without any, the largest.
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
    root = _Estimated(Row(Step(""), 0.0, 0.0), sum(row.value for row in entries), 0.0, None)
    root.children = [_Estimated(row, row.value, row.own, root) for row in entries]
    notes += _follow(root, groups)
    return root.frozen(), tuple(notes)


def butterfly(groups: Groups, step: Step) -> Butterfly:
    """Return the group of ``step``: no estimate."""
    group = groups.get(step)
    if group is None:
        return Butterfly(step, 0.0)
    row, callees = group.row, _wings(group.callees)
    return Butterfly(
        step,
        row.value,
        _own(step, row.own, callees),
        place=row.place,
        callers=_wings(group.callers),
        callees=callees,
    )


def _wings(rows: Sequence[Row]) -> tuple[Wing, ...]:
    wings = [Wing(row.step, row.value, place=row.place) for row in rows]
    return tuple(sorted(wings, key=most_first))


def _follow(root: _Estimated, groups: Groups) -> Iterator[str]:
    """Give the largest branch its children, until all have theirs or there are too many."""
    count = len(root.children)
    waiting = [(-node.value, n, node) for n, node in enumerate(root.children)]
    heapq.heapify(waiting)
    too_deep = False
    while waiting:
        _, _, node = heapq.heappop(waiting)
        group = groups.get(node.row.step)
        if group is None or not group.callees or node.value <= 0:
            continue
        if node.depth >= _DEEPEST:
            too_deep = True
            continue
        if count + len(group.callees) > MAX_NODES:
            yield f"the tree ends at {MAX_NODES} branches: the smallest are not followed"
            return
        for row in group.callees:
            count += 1
            child = node.follow(row, group.row.value)
            if not child.again:
                heapq.heappush(waiting, (-child.value, count, child))
    if too_deep:
        yield f"branches of more than {_DEEPEST} calls are not followed further"


@dataclass(slots=True, eq=False)
class _Estimated:
    """A node while the tree grows."""

    row: Row
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

    def follow(self, row: Row, whole: float) -> _Estimated:
        """Add what ``row`` says of a callee, of whose caller's ``whole`` this branch has a part."""
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
            place=self.row.place,
            children=children,
            again=self.again,
        )


def _own(step: Step, own: float, callees: Sequence[Node | Wing]) -> float:
    """As in a tree of whole stacks: what a lock was waited for, its caller waited itself."""
    locks = sum(callee.value for callee in callees if callee.step.part is Part.LOCK)
    return 0.0 if step.part is Part.LOCK else own + locks
