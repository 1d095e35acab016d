"""The function calls of one thread, or of all threads, as one tree and as a list of functions.

The library has a tree for each thread. Trees are added up by the names of the functions. So the
trees of several threads fit together, and those of scans at different times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.extensions.calls.model import CallNode, CallTree, calls_of
from locktop.collector.model import Frame, Snapshot
from locktop.collector.render.profiles.call_tree import SourceLine, Step, function

#: The tid of the tree of all threads that have ended.
ENDED = 0
_UNKNOWN = Step("a function without a known address")


class CallSum(Struct):
    """A function in one context, with the sums over several threads. Times are seconds."""

    step: Step
    location: SourceLine | None = None
    count: int = 0  # calls, also those that go on
    total_s: float = 0.0  # with callees
    own_s: float = 0.0
    wait_s: float = 0.0  # of total_s, in waits for locks
    short_count: int = 0
    active: bool = False
    children: dict[Step, CallSum] = field(default_factory=dict)

    def add(self, node: CallNode) -> None:
        """Add the figures of a node."""
        self.count += node.count
        self.total_s += node.total_s
        self.own_s += node.own_s
        self.wait_s += node.wait_s
        self.short_count += node.short_count
        self.active = self.active or node.active

    def subtract(self, before: CallSum) -> None:
        """Take the figures of an earlier scan away. A smaller figure belongs to another thread."""
        if self.count == before.count and not before.active:
            # No call since. Each scan measures the clock anew, so the same time may differ a bit.
            self.count = self.short_count = 0
            self.total_s = self.own_s = self.wait_s = 0.0
            return
        self.count = _less(self.count, before.count)
        self.short_count = _less(self.short_count, before.short_count)
        self.total_s = max(self.total_s - before.total_s, 0.0)
        self.own_s = max(self.own_s - before.own_s, 0.0)
        self.wait_s = max(self.wait_s - before.wait_s, 0.0)


class Context(Struct, frozen=True):
    """A node of the tree with its place. The tree is in depth-first order."""

    node: CallSum
    depth: int  # 0: the outermost call
    caller: CallSum | None
    is_nested: bool  # the function is among its callers already


class FunctionSum(Struct):
    """All calls of one function. Times are seconds.

    The time of a recursive call is in the call around it, so total_s and wait_s count it once.
    """

    step: Step
    location: SourceLine | None = None
    count: int = 0
    total_s: float = 0.0
    own_s: float = 0.0
    wait_s: float = 0.0
    short_count: int = 0
    active: bool = False


class Calls(Struct, frozen=True):
    """The added trees, and what the library could not count."""

    root: CallSum  # no function
    threads: tuple[int, ...]  # their tids; ENDED: those that have ended
    traced_s: float = 0.0  # seconds in counted functions, of all these threads
    too_deep: int = 0
    left_out: int = 0
    unmatched: int = 0


def sum_calls(snapshot: Snapshot, tid: int | None = None, before: Snapshot | None = None) -> Calls:
    """Return the calls of a snapshot.

    Args:
        snapshot: a scan with function calls.
        tid: one thread, or ENDED; None: all threads.
        before: an earlier scan of the same process: only the calls since then count.
    """
    trees = _select_trees(calls_of(snapshot), tid)
    root = _add_trees(snapshot, trees)
    earlier: Sequence[CallTree] = ()
    if before is not None:
        before_trees = calls_of(before)
        earlier = _select_trees(before_trees, tid)
        if tid == ENDED:
            # The calls of a thread that has ended meanwhile are those of ended threads now.
            alive = {tree.tid for tree in calls_of(snapshot)}
            earlier = [tree for tree in before_trees if tree.tid == ENDED or tree.tid not in alive]
        # Each scan may know more names than the one before.
        _subtract(
            root, _add_trees(replace(before, stacks={**before.stacks, **snapshot.stacks}), earlier)
        )
    return Calls(
        root=root,
        threads=tuple(tree.tid for tree in trees),
        traced_s=sum(child.total_s for child in root.children.values()),
        too_deep=_difference("too_deep", trees, earlier),
        left_out=_difference("left_out", trees, earlier),
        unmatched=_difference("unmatched", trees, earlier),
    )


def _select_trees(trees: Sequence[CallTree], tid: int | None) -> Sequence[CallTree]:
    return trees if tid is None else [tree for tree in trees if tree.tid == tid]


def _difference(name: str, trees: Iterable[CallTree], before: Iterable[CallTree]) -> int:
    whole = sum(getattr(tree, name) for tree in trees)
    return _less(whole, sum(getattr(tree, name) for tree in before))


def _less(figure: int, before: int) -> int:
    return figure - before if figure >= before else figure


def _add_trees(snapshot: Snapshot, trees: Iterable[CallTree]) -> CallSum:
    root = CallSum(Step(""))
    known_steps: dict[int, Step] = {}
    for tree in trees:
        sums: list[CallSum | None] = []
        for index, node in enumerate(tree.nodes):
            # A file may come from a stranger. A caller stands before its callees.
            above = root if node.parent is None else None
            if node.parent is not None and 0 <= node.parent < index:
                above = sums[node.parent]
            if above is None:
                sums.append(None)
                continue
            frame = _frame(snapshot, node.function)
            step = known_steps.get(node.function)
            if step is None:
                step = known_steps[node.function] = function(frame) if frame else _UNKNOWN
            call_sum = above.children.get(step)
            if call_sum is None:
                call_sum = above.children[step] = CallSum(step, _location(frame))
            call_sum.add(node)
            sums.append(call_sum)
    return root


def _frame(snapshot: Snapshot, stack: int) -> Frame | None:
    frames = snapshot.stacks.get(stack)
    return frames[-1] if frames else None


def _location(frame: Frame | None) -> SourceLine | None:
    if frame is None or not frame.file:
        return None
    return SourceLine(frame.file, frame.line or 0, frame.path)


def _subtract(root: CallSum, before: CallSum) -> None:
    """Take an earlier tree away, and drop the branches in which nothing happened since."""
    pending = [(root, before)]
    order = []
    while pending:
        node, earlier = pending.pop()
        node.subtract(earlier)
        order.append(node)
        pending += [
            (child, earlier.children[step])
            for step, child in node.children.items()
            if step in earlier.children
        ]
    for node in reversed(order):
        node.children = {
            step: child
            for step, child in node.children.items()
            if child.count or child.active or child.total_s > 0 or child.children
        }


# ---- walks ----


def contexts(root: CallSum) -> Iterator[Context]:
    """Yield the nodes below ``root``, depth first; the largest total comes first."""
    path: list[Step] = []
    open_: dict[Step, int] = {}  # how often a function is on the path
    line: list[tuple[CallSum, int, CallSum | None]] = [
        (child, 0, None) for child in _sort_callees(root)
    ]
    while line:
        node, depth, caller = line.pop()
        while len(path) > depth:
            open_[path.pop()] -= 1
        yield Context(node, depth, caller, open_.get(node.step, 0) > 0)
        path.append(node.step)
        open_[node.step] = open_.get(node.step, 0) + 1
        line += [(child, depth + 1, node) for child in _sort_callees(node)]


def _sort_callees(node: CallSum) -> list[CallSum]:
    """Return the callees, the last one first: the largest total comes first."""
    return sorted(
        node.children.values(), key=lambda child: (child.total_s, child.count, child.step)
    )


def functions(root: CallSum) -> list[FunctionSum]:
    """Return all functions; the one with the largest own time first."""
    sums: dict[Step, FunctionSum] = {}
    for context in contexts(root):
        node = context.node
        function_sum = sums.get(node.step)
        if function_sum is None:
            function_sum = sums[node.step] = FunctionSum(node.step, node.location)
        function_sum.count += node.count
        function_sum.own_s += node.own_s
        function_sum.short_count += node.short_count
        function_sum.active = function_sum.active or node.active
        if not context.is_nested:
            function_sum.total_s += node.total_s
            function_sum.wait_s += node.wait_s
    return sorted(
        sums.values(),
        key=lambda function_sum: (-function_sum.own_s, -function_sum.count, function_sum.step),
    )


def names_of(snapshot: Snapshot) -> Mapping[int, str]:
    """Return the names of the threads that have calls, by tid."""
    return {tree.tid: tree.name for tree in calls_of(snapshot)}
