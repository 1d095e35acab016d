"""The rows of the tree of callers: which branches are open, and which chains are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from locktop.collector.profile.call_tree import Node, Step, StepKind
from locktop.tui.views.sorting import Ordering, matches

#: A branch with this share of the whole is open until somebody closes it, and coloured.
HOT = 0.1

Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Nodes of which each is the only callee of the one before it, as one row."""

    path: Path  # of the last node
    nodes: tuple[Node, ...]
    depth: int
    open: bool | None  # None: there is nothing below

    @property
    def node(self) -> Node:
        """The one whose figures are shown: the last that is no lock, if there is one."""
        return next(
            (node for node in reversed(self.nodes) if node.step.kind is not StepKind.LOCK),
            self.nodes[-1],
        )


class Branches:
    """What is open and in which order it is, kept from one picture to the next."""

    def __init__(self) -> None:
        self._said: dict[Path, bool] = {}  # by whoever looks
        self._hot: set[Path] = set()  # once open it does not close by itself
        self._ids: dict[Path, int] = {}
        self._paths: list[Path] = []
        self._ranks: dict[Path, int] = {}
        self._due = Ordering()

    def id_of(self, path: Path) -> int:
        """A number for a path that stays its own."""
        if path not in self._ids:
            self._ids[path] = len(self._paths)
            self._paths.append(path)
        return self._ids[path]

    def path_of(self, id_: int) -> Path:
        """The path that has the number."""
        return self._paths[id_]

    def set_open(self, path: Path, is_open: bool) -> None:
        """Open or close a branch for good."""
        self._said[path] = is_open

    def upset(self) -> None:
        """Sort at once, not when it is next due."""
        self._due.upset()

    def rows(self, root: Node, idle: bool, wanted: str, now: float) -> list[Row]:
        """The rows that can be seen; ``wanted``: the words of a filter, ``now``: seconds on a
        monotonic clock. The order changes at most once a second."""
        if wanted:
            root = _filtered(root, wanted)
        if self._due.due(now):
            self._due.arrange((), now, list)
            self._ranks = {}
        whole = _weight(root, idle)
        found = []
        line: list[tuple[Path, Node, int]] = [
            ((child.step,), child, 0) for child in reversed(self._shown(root, (), idle))
        ]
        while line:
            path, node, depth = line.pop()
            nodes = [node]
            below = self._shown(node, path, idle)
            while len(below) == 1 and _same(below[0], node, idle) and not node.again:
                node = below[0]
                nodes.append(node)
                path = (*path, node.step)
                below = self._shown(node, path, idle)
            is_open = self._is_open(path, node, idle, whole, wanted) if below else None
            found.append(Row(path, tuple(nodes), depth, is_open))
            if is_open:
                line += [((*path, child.step), child, depth + 1) for child in reversed(below)]
        return found

    def _is_open(self, path: Path, node: Node, idle: bool, whole: float, wanted: str) -> bool:
        if path not in self._hot and whole > 0 and _weight(node, idle) / whole >= HOT:
            self._hot.add(path)
        return self._said.get(path, path in self._hot or bool(wanted))

    def _shown(self, node: Node, path: Path, idle: bool) -> Sequence[Node]:
        """The children that can be seen, in the order that they had, new ones last."""
        shown = [child for child in node.children if child.value > 0 or (idle and child.idle > 0)]
        if len(shown) < 2:
            return shown
        ranks = self._ranks
        for child in shown:  # the most first, as they come
            ranks.setdefault((*path, child.step), len(ranks))
        return sorted(shown, key=lambda child: ranks[*path, child.step])


def _weight(node: Node, idle: bool) -> float:
    return node.value + (node.idle if idle else 0.0)


def _same(child: Node, node: Node, idle: bool) -> bool:
    """Whether nothing went another way; sums of the same figures may differ in the last bits."""
    whole = _weight(node, idle)
    return abs(_weight(child, idle) - whole) <= 1e-9 * whole


def _filtered(root: Node, wanted: str) -> Node:
    """The branches that lead to what has the words in its name, and all below that. Without
    recursion: a stack read from a file may be of any depth."""
    order = [root]
    whole: set[int] = set()
    for node in order:
        if matches(" ".join(_words(node)), wanted):
            whole.add(id(node))
        else:
            order += node.children
    kept: dict[int, Node] = {}
    for node in reversed(order):
        children = tuple(kept[id(child)] for child in node.children if id(child) in kept)
        if id(node) in whole:
            kept[id(node)] = node
        elif children or node is root:
            kept[id(node)] = node._replace(children=children)
    return kept[id(root)]


def _words(node: Node) -> Iterator[str]:
    yield node.step.name
    yield node.step.module
    if node.location is not None:
        yield node.location.file
