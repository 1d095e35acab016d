"""The difference of two call trees: where more was waited in the second span than in the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from locktop.collector.model import Snapshot
from locktop.collector.render.profiles import call_tree
from locktop.collector.render.profiles.call_tree import Node, SourceLine, Step

#: The trees are joined by recursion, and a stack of a file may have any depth.
MAX_DEPTH = 500


class Rates(Struct, frozen=True, gc=False):
    """Waits in contention of one function in one context, per second of the span."""

    wait: float = 0.0  # seconds waited per second
    count: float = 0.0  # waits per second


class DifferenceNode(Struct, frozen=True):
    """A function in one context, in both spans."""

    step: Step
    location: SourceLine | None
    before: Rates
    after: Rates
    children: tuple[DifferenceNode, ...]  # the largest difference first

    @property
    def more_wait(self) -> float:
        """How much more was waited in the second span, seconds per second."""
        return self.after.wait - self.before.wait

    @property
    def more_count(self) -> float:
        """How many more waits a second the second span has."""
        return self.after.count - self.before.count


class _Trees(Struct, frozen=True):
    """The trees of one span by both weights."""

    wait: Node
    count: Node
    span_s: float

    @staticmethod
    def from_snapshot(snapshot: Snapshot) -> _Trees:
        return _Trees(
            wait=call_tree.tree(call_tree.branches(snapshot, call_tree.WAIT)),
            count=call_tree.tree(call_tree.branches(snapshot, call_tree.COUNT)),
            span_s=max(snapshot.duration_s, 1e-9),
        )


def difference(before: Snapshot, after: Snapshot) -> DifferenceNode:
    """Return the root of the trees of two spans, joined by function.

    Of a stack of more than MAX_DEPTH functions the inner ones are left out.

    Args:
        before: the waits of the first span, see analysis/span_snapshot.py.
        after: those of the second one.
    """
    former, other = _Trees.from_snapshot(before), _Trees.from_snapshot(after)
    return _join(
        Step(""),
        (former.wait, former.count, former.span_s),
        (other.wait, other.count, other.span_s),
    )


#: The node of a function by both weights, None where the span does not have it, and the seconds.
_Pair = tuple[Node | None, Node | None, float]


def _join(step: Step, before: _Pair, after: _Pair, depth: int = 0) -> DifferenceNode:
    below = [_children(node) for node in (before[0], before[1], after[0], after[1])]
    if depth >= MAX_DEPTH:
        below = []
    children = []
    for child_step in dict.fromkeys(step for nodes in below for step in nodes):
        nodes = [children_of_tree.get(child_step) for children_of_tree in below]
        children.append(
            _join(
                child_step,
                (nodes[0], nodes[1], before[2]),
                (nodes[2], nodes[3], after[2]),
                depth + 1,
            )
        )
    located = next((node for node in (after[0], before[0]) if node is not None), None)
    return DifferenceNode(
        step=step,
        location=located.location if located is not None else None,
        before=_rates(before),
        after=_rates(after),
        children=tuple(
            sorted(children, key=lambda node: (-abs(node.more_wait), -abs(node.more_count)))
        ),
    )


def _children(node: Node | None) -> Mapping[Step, Node]:
    if node is None:
        return {}
    return {child.step: child for child in node.children if child.value > 0}


def _rates(pair: _Pair) -> Rates:
    wait, count, span_s = pair
    return Rates(
        wait=wait.value / span_s if wait is not None else 0.0,
        count=count.value / span_s if count is not None else 0.0,
    )


class DifferenceRow(Struct, frozen=True):
    """One row: a chain of functions with the same figures, of which the last one has the line."""

    depth: int
    nodes: tuple[DifferenceNode, ...]

    @property
    def node(self) -> DifferenceNode:
        """The last function of the chain."""
        return self.nodes[-1]


def rows(root: DifferenceNode) -> Iterator[DifferenceRow]:
    """Yield the functions below the root, depth first, the largest difference first."""
    pending = [(0, child) for child in reversed(root.children)]
    while pending:
        depth, node = pending.pop()
        chain = [node]
        while len(node.children) == 1 and _has_same_figures(node, node.children[0]):
            node = node.children[0]
            chain.append(node)
        yield DifferenceRow(depth, tuple(chain))
        pending += [(depth + 1, child) for child in reversed(node.children)]


def _has_same_figures(node: DifferenceNode, child: DifferenceNode) -> bool:
    return node.before == child.before and node.after == child.after
