"""The function calls of a snapshot as a profile: a tree by time, by calls or by lock wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from locktop.collector.extensions.calls.function_calls import (
    Calls,
    CallSum,
    Context,
    contexts,
    functions,
    sum_calls,
)
from locktop.collector.extensions.calls.model import calls_of
from locktop.collector.model import Snapshot
from locktop.collector.render.profiles.call_tree import Butterfly, Node, Step, Wing, most_first
from locktop.collector.render.profiles.profile import Weight, WeightUnit

TOTAL, OWN, COUNT, WAIT = "total", "own", "count", "wait"
CALLS_WEIGHTS = (
    Weight(TOTAL, "time in calls", WeightUnit.SECONDS),
    Weight(OWN, "own time, without callees", WeightUnit.SECONDS),
    Weight(COUNT, "calls", WeightUnit.COUNT),
    Weight(WAIT, "waits for locks in calls", WeightUnit.SECONDS),
)
#: The note on a process without function calls. The note fits into a line of 80 columns.
NO_CALLS = "no function calls: build with -finstrument-functions, use `locktop run`"
NOT_READ = "the next scan reads the function calls"
NOT_KEPT = "no function calls are kept of this moment"


class CallsProfile:
    """The function calls of one snapshot, or of the time between two."""

    name = "calls"
    weights = CALLS_WEIGHTS
    estimate = False

    def __init__(
        self,
        snapshot: Snapshot,
        tid: int | None = None,
        before: Snapshot | None = None,
        *,
        missing: str = NO_CALLS,
    ) -> None:
        """Args:
        snapshot: the scan.
        tid: one thread; None: all threads.
        before: an earlier scan: only the calls since then count.
        missing: the note on a scan without function calls.
        """
        self.snapshot = snapshot
        self.tid = tid
        self.before = before
        self._missing = missing
        self.process = snapshot.process
        self._calls: Calls | None = None

    @property
    def calls(self) -> Calls:
        """The added trees."""
        if self._calls is None:
            self._calls = sum_calls(self.snapshot, self.tid, self.before)
        return self._calls

    @property
    def title(self) -> str:
        process = self.process
        return f"{process.comm} {process.pid} on {self.snapshot.host}, {self.snapshot.taken_at}"

    def tree(self, weight: str) -> Node:
        """See Profile. By OWN the tree is a list of functions: there are no callees."""
        if weight == OWN:
            nodes = [
                Node(entry.step, entry.own_s, entry.own_s, location=entry.location)
                for entry in functions(self.calls.root)
            ]
            return Node(Step(""), sum(node.value for node in nodes), children=tuple(nodes))
        return _tree(self.calls.root, weight)

    def butterfly(self, weight: str, step: Step) -> Butterfly:
        """See Profile. Only the outermost call of a recursive function has its time."""
        value, own, location = 0.0, 0.0, None
        callers: dict[Step, float] = {}
        callees: dict[Step, Wing] = {}
        read = _READ[weight]
        for context in contexts(self.calls.root):
            node, caller = context.node, context.caller
            figure = read(context)
            if node.step == step:
                value += figure
                own += _own(node, weight)
                location = location or node.location
                if caller is not None:
                    callers[caller.step] = callers.get(caller.step, 0.0) + figure
            if caller is not None and caller.step == step:
                wing = callees.get(node.step)
                figure += wing.value if wing is not None else 0.0
                callees[node.step] = Wing(node.step, figure, location=node.location)
        return Butterfly(
            step,
            value,
            own,
            location=location,
            callers=_sort_wings(
                Wing(caller_step, figure) for caller_step, figure in callers.items()
            ),
            callees=_sort_wings(iter(callees.values())),
        )

    def butterflies(self, weight: str) -> Mapping[Step, Butterfly]:
        steps = [entry.step for entry in functions(self.calls.root)]
        return {step: self.butterfly(weight, step) for step in steps}

    def notes(self, weight: str) -> tuple[str, ...]:
        if not calls_of(self.snapshot):
            return (self._missing,)
        return call_notes(self.calls)


def call_notes(calls: Calls) -> tuple[str, ...]:
    """Return what the library could not count, one line each."""
    notes = []
    if calls.too_deep:
        notes.append(f"{calls.too_deep:,} calls beyond the depth limit (LOCKTOP_CALLS_DEPTH)")
    if calls.left_out:
        notes.append(f"{calls.left_out:,} calls were not counted: no room in the call tree")
    if calls.unmatched:
        notes.append(f"{calls.unmatched:,} calls ended whose begin was not counted")
    return tuple(notes)


# ---- figures of one node ----


def _total(context: Context) -> float:
    return 0.0 if context.is_nested else context.node.total_s


def _wait(context: Context) -> float:
    return 0.0 if context.is_nested else context.node.wait_s


_READ: Mapping[str, Callable[[Context], float]] = {
    TOTAL: _total,
    OWN: lambda context: context.node.own_s,
    COUNT: lambda context: float(context.node.count),
    WAIT: _wait,
}


def _own(node: CallSum, weight: str) -> float:
    if weight == COUNT:
        return float(node.count)
    return _own_wait(node) if weight == WAIT else node.own_s


def _own_wait(node: CallSum) -> float:
    return max(node.wait_s - sum(child.wait_s for child in node.children.values()), 0.0)


def _sort_wings(wings: Iterator[Wing]) -> tuple[Wing, ...]:
    return tuple(sorted(wings, key=most_first))


# ---- the tree ----


def _tree(root: CallSum, weight: str) -> Node:
    """Return the tree, without recursion: a tree may have any depth."""
    order = [root]
    for node in order:
        order += node.children.values()
    done: dict[int, Node] = {}
    for node in reversed(order):
        children = sorted((done[id(child)] for child in node.children.values()), key=most_first)
        own = _own(node, weight)
        if node is root or weight == COUNT:
            value = own + sum(child.value for child in children)
        else:
            value = node.total_s if weight == TOTAL else node.wait_s
        done[id(node)] = Node(
            node.step, value, own, location=node.location, children=tuple(children)
        )
    return done[id(root)]
