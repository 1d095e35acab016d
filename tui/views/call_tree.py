"""The rows of the call tree: which branches are open, and which chains are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from locktop.collector.render.profiles.call_tree import Node, Step, StepKind
from locktop.tui.views.sorting import StableSorter, matches

#: A branch with this share of the whole is coloured, and open until the user closes it.
HOT = 0.1

Path = tuple[Step, ...]


class Row(Struct, frozen=True):
    """A chain of nodes as one row: each node is the only callee of the node before."""

    path: Path  # of the last node
    nodes: tuple[Node, ...]
    depth: int
    open: bool | None  # None: nothing is below

    @property
    def node(self) -> Node:
        """The node whose figures the row has: the last that is no lock, else the last."""
        return next(
            (node for node in reversed(self.nodes) if node.step.kind is not StepKind.LOCK),
            self.nodes[-1],
        )


class Branches:
    """Which branches are open, and their order, kept from one snapshot to the next."""

    def __init__(self) -> None:
        self._chosen: dict[Path, bool] = {}  # by the user
        self._hot: set[Path] = set()  # a branch that was hot once does not close by itself
        self._ids: dict[Path, int] = {}
        self._paths: list[Path] = []
        self._ranks: dict[Path, int] = {}
        self._sorter = StableSorter()

    def id_of(self, path: Path) -> int:
        """The number of a path, which never changes."""
        if path not in self._ids:
            self._ids[path] = len(self._paths)
            self._paths.append(path)
        return self._ids[path]

    def path_of(self, id_: int) -> Path:
        """The path with that number."""
        return self._paths[id_]

    def set_open(self, path: Path, is_open: bool) -> None:
        """Open or close a branch, whatever its share."""
        self._chosen[path] = is_open

    def sort_now(self) -> None:
        """Sort at the next drawing."""
        self._sorter.sort_now()

    def rows(self, root: Node, idle: bool, wanted: str, now: float) -> list[Row]:
        """The visible rows. Their order changes at most once a second.

        Args:
            root: the tree.
            idle: whether to show what has only waits for work.
            wanted: the words of a filter.
            now: seconds on a monotonic clock.
        """
        if wanted:
            root = _prune(root, wanted)
        if self._sorter.is_due(now):
            self._sorter.arrange((), now, list)
            self._ranks = {}
        whole = _weight(root, idle)
        visible = []
        line: list[tuple[Path, Node, int]] = [
            ((child.step,), child, 0) for child in reversed(self._visible(root, (), idle))
        ]
        while line:
            path, node, depth = line.pop()
            nodes = [node]
            below = self._visible(node, path, idle)
            while len(below) == 1 and _same(below[0], node, idle) and not node.again:
                node = below[0]
                nodes.append(node)
                path = (*path, node.step)
                below = self._visible(node, path, idle)
            is_open = self._is_open(path, node, idle, whole, wanted) if below else None
            visible.append(Row(path, tuple(nodes), depth, is_open))
            if is_open:
                line += [((*path, child.step), child, depth + 1) for child in reversed(below)]
        return visible

    def _is_open(self, path: Path, node: Node, idle: bool, whole: float, wanted: str) -> bool:
        if path not in self._hot and whole > 0 and _weight(node, idle) / whole >= HOT:
            self._hot.add(path)
        return self._chosen.get(path, path in self._hot or bool(wanted))

    def _visible(self, node: Node, path: Path, idle: bool) -> Sequence[Node]:
        """The visible children in the order of the last sort, new ones last."""
        visible = [child for child in node.children if child.value > 0 or (idle and child.idle > 0)]
        if len(visible) < 2:
            return visible
        ranks = self._ranks
        for child in visible:  # the largest is the first
            ranks.setdefault((*path, child.step), len(ranks))
        return sorted(visible, key=lambda child: ranks[*path, child.step])


def _weight(node: Node, idle: bool) -> float:
    return node.value + (node.idle if idle else 0.0)


def _same(child: Node, node: Node, idle: bool) -> bool:
    """Whether all of ``node`` went to ``child``. Equal sums may differ in their last bits."""
    whole = _weight(node, idle)
    return abs(_weight(child, idle) - whole) <= 1e-9 * whole


def _prune(root: Node, wanted: str) -> Node:
    """The branches that lead to nodes with the words in their names, and all below these.

    Not recursive: a stack from a file may have any depth.
    """
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
