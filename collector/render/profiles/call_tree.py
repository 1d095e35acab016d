"""Call trees of waiting: from the entry functions of the threads down to the awaited locks.

A butterfly shows one function with its callers and its callees. Trees and butterflies are sums over
whole stacks, so each value belongs to its own branch. All frames of one function are one node,
whatever their lines are. A recursive function has one node for each depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct, field

from locktop.collector.analysis import divided_waits, lock_classes
from locktop.collector.model import Frame, Kind, Lock, Snapshot, WaitStack
from locktop.collector.model.frames import PYTHON
from locktop.collector.render.words.lock_kind import name_with_kind

#: The weights of a snapshot: seconds waited, number of waits, seconds that other threads waited
#: for a holder.
WAIT, COUNT, BLAME = "wait", "count", "blame"

#: A class of more locks is one end of a branch: which lock it was says little.
_MAX_SEPARATE_LOCKS = 8
#: The counters are read one after the other. A smaller part of a wait without a stack is no wait.
_MIN_WITHOUT_STACK = 0.01


class StepKind(StrEnum):
    """The kind of thing that a step stands for; the value is the word in JSON."""

    FUNCTION = "function"
    LOCK = "lock"  # the lock that was waited for: the end of a branch
    THREAD = "thread"  # the thread that held the lock
    UNKNOWN = "unknown"  # waits without a stack

    # The hash of Enum is written in Python, and each frame of each stack needs the hash of a step.
    __hash__ = str.__hash__


class Step(NamedTuple):
    """A function, a lock or a thread: the key of a node."""

    name: str
    module: str = ""
    kind: StepKind = StepKind.FUNCTION
    #: Lock id or tid, 0 for a class of locks; for a function without a name, its address.
    number: int = 0


NO_STACK = Step("no stack known", kind=StepKind.UNKNOWN)
#: The same of a sampled process: no scan met these waits.
_OVER = Step("stack unknown, the wait was over", kind=StepKind.UNKNOWN)


class SourceLine(NamedTuple):
    """A line of the source."""

    file: str
    line: int
    path: str = ""  # of the file, as far as it is known


class StackCall(NamedTuple):
    """One frame of a branch."""

    step: Step
    location: SourceLine | None = None
    inlined: bool = False
    estimate: bool = False  # its part of the value rests on samples


class Branch(Struct, frozen=True):
    """One stack with its weight: the entry function first, the lock last."""

    calls: tuple[StackCall, ...]
    value: float
    #: The waits were idle: they are never added to contention.
    idle: bool = False


class Node(NamedTuple):
    """A function in one context, with the sum of the waits below it.

    ``own`` is the part of ``value`` that the function itself waited, for the locks that are its
    children. ``idle`` and ``own_idle`` are the same sums over idle waits.
    """

    step: Step
    value: float
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    location: SourceLine | None = None  # the line with the most of the value
    inlined: bool = False
    children: tuple[Node, ...] = ()  # the largest value first
    again: bool = (
        False  # in an estimate: the function is on the path already, so it has no children
    )
    estimate: bool = False  # the values rest on samples


class Wing(Struct, frozen=True):
    """A caller or a callee, with the part of its function's value that went through it."""

    step: Step
    value: float
    idle: float = 0.0
    location: SourceLine | None = None  # the calling line of a caller, the own line of a callee
    inlined: bool = False
    estimate: bool = False


class Butterfly(Struct, frozen=True):
    """A function with its callers and callees. Each stack counts once for each of them."""

    step: Step
    value: float
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    location: SourceLine | None = None
    callers: tuple[Wing, ...] = ()  # the largest value first
    callees: tuple[Wing, ...] = ()
    estimate: bool = False


def branches(snapshot: Snapshot, weight: str) -> Iterator[Branch]:
    """Return the waits of a snapshot with their stacks.

    Args:
        snapshot: A classified snapshot.
        weight: WAIT, COUNT or BLAME.

    Raises:
        ValueError: There is no such weight.
    """
    if weight == BLAME:
        return _blame_branches(snapshot)
    if weight not in (WAIT, COUNT):
        raise ValueError(weight)
    return _wait_branches(snapshot, weight)


def tree(branches: Iterable[Branch]) -> Node:
    """Return the root of a tree: a node without a function, whose children are the entry functions
    of the threads."""
    root = _NodeSum(Step(""))
    for branch in branches:
        node, above = root, root
        node.add(branch.value, branch.idle)
        for call in branch.calls:
            node, above = node.child(call.step), node
            node.add(branch.value, branch.idle)
            node.add_location(call, branch.value)
            node.estimate |= call.estimate
        owner = above if node.step.kind is StepKind.LOCK else node
        owner.add_own(branch.value, branch.idle)
    return root.frozen()


def butterfly(branches: Iterable[Branch], step: Step) -> Butterfly:
    """Return ``step`` with its callers and callees."""
    sums = _ButterflySum(step)
    for branch in branches:
        sums.add(branch)
    return sums.frozen()


def butterflies(branches: Iterable[Branch]) -> dict[Step, Butterfly]:
    """Return the butterfly of every function, lock and thread."""
    sums: dict[Step, _ButterflySum] = {}
    for branch in branches:
        for step in dict.fromkeys(call.step for call in branch.calls):
            sums.setdefault(step, _ButterflySum(step)).add(branch)
    return {step: butterfly_sum.frozen() for step, butterfly_sum in sums.items()}


def steps(root: Node) -> set[Step]:
    """Return every function, lock and thread of a tree."""
    found_steps: set[Step] = set()
    pending = list(root.children)
    while pending:
        node = pending.pop()
        found_steps.add(node.step)
        pending += node.children
    return found_steps


# ---- from a snapshot to branches ----


def _wait_branches(snapshot: Snapshot, weight: str) -> Iterator[Branch]:
    calls: dict[int, tuple[StackCall, ...]] = {}
    known_calls: dict[int, StackCall] = {}
    ends = _ends(snapshot)
    for lock in snapshot.locks:
        end = ends[lock.id]
        for entry in lock.wait_stacks:
            if weight == WAIT and divided_waits.is_divided(entry):
                yield from _divided_branches(snapshot, entry, end, known_calls)
                continue
            value = entry.wait_s if weight == WAIT else entry.count
            if entry.stack not in calls:
                calls[entry.stack] = _calls(snapshot.stacks.get(entry.stack, ()), known_calls)
            if value > 0:
                yield Branch((*calls[entry.stack], end), value, entry.idle)
        left = _stackless_wait(lock, lock.wait_stacks, weight)
        if left > 0:
            yield Branch((StackCall(_stackless_step(snapshot, lock)), end), left, lock.idle)


def _divided_branches(
    snapshot: Snapshot, entry: WaitStack, end: StackCall, known_calls: dict[int, StackCall]
) -> Iterator[Branch]:
    """Yield a branch for each part of the waits from one native stack.

    The sum over all parts is exact. So are the values of the functions outside of Python that all
    parts have.
    """
    parts = divided_waits.parts(entry)
    frames = [snapshot.stacks.get(part.stack, ()) for part in parts]
    stacks = [_calls(stack, known_calls) for stack in frames]
    exact = min(_native_callers(stack) for stack in frames)
    exact = min(exact, _common([[call.step for call in calls] for calls in stacks]))
    for part, calls in zip(parts, stacks, strict=True):
        divided = (call._replace(estimate=True) for call in (*calls[exact:], end))
        if part.wait_s > 0:
            yield Branch((*calls[:exact], *divided), part.wait_s, entry.idle)


def _native_callers(frames: Sequence[Frame]) -> int:
    """Return how many frames lie outside of the outermost Python function."""
    return sum(1 for _ in takewhile(lambda frame: frame.module != PYTHON, reversed(frames)))


def _common(stacks: Sequence[Sequence[Step]]) -> int:
    """Return how many of the outermost functions all stacks have in common."""
    levels = zip(*stacks, strict=False)
    return sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))


def _stackless_wait(lock: Lock, stacks: Iterable[WaitStack], weight: str) -> float:
    """Return the part of a lock's wait that has no known stack."""
    if weight == WAIT:
        whole, covered = lock.wait_s, sum(entry.wait_s for entry in stacks)
    else:
        whole, covered = float(lock.contended), float(sum(entry.count for entry in stacks))
    return whole - covered if whole - covered > whole * _MIN_WITHOUT_STACK else 0.0


def _stackless_step(snapshot: Snapshot, lock: Lock) -> Step:
    """Return the step of the waits for a lock without a stack, which says why as far as known."""
    stacks = {entry.stack for entry in lock.wait_stacks}
    waits = [thread.waiting_for for thread in snapshot.threads]
    stack_is_missing = any(
        wait is not None and wait.lock == lock.id and wait.stack not in stacks for wait in waits
    )
    return NO_STACK if stack_is_missing or not snapshot.is_sampled else _OVER


def _blame_branches(snapshot: Snapshot) -> Iterator[Branch]:
    """Yield the blame of the locks. Of a hold, only the frame that took the lock is known, and the
    lock that its holder waited for."""
    names = {thread.tid: thread.name for thread in snapshot.threads}
    lock_names = {lock.id: lock.name for lock in snapshot.locks}
    ends = _ends(snapshot)
    for lock in snapshot.locks:
        end = ends[lock.id]
        for blame in lock.blame:
            name = blame.holder_label or names.get(blame.tid, "") or f"thread {blame.tid}"
            holder = StackCall(Step(name, kind=StepKind.THREAD, number=blame.tid))
            frame = snapshot.sites.get(blame.site)
            site = (_call(frame),) if frame is not None else ()
            through = lock_names.get(blame.through)
            own_wait = (_own_wait(through),) if through is not None else ()
            if blame.wait_s > 0:
                yield Branch((holder, *site, *own_wait, end), blame.wait_s, lock.idle)


def calls_of(frames: tuple[Frame, ...]) -> tuple[StackCall, ...]:
    """Return the frames of a stack, the outermost first."""
    return _calls(frames, {}) if frames else ()


def _calls(frames: tuple[Frame, ...], known_calls: dict[int, StackCall]) -> tuple[StackCall, ...]:
    """Return the frames of a stack, the outermost first. ``known_calls``: the frames of other
    stacks by their identity, because stacks share most of their frames."""
    calls = []
    for frame in reversed(frames):
        call = known_calls.get(id(frame))
        if call is None:
            call = known_calls[id(frame)] = _call(frame)
        calls.append(call)
    return tuple(calls) or (StackCall(NO_STACK),)


def _call(frame: Frame) -> StackCall:
    location = SourceLine(frame.file, frame.line or 0, frame.path) if frame.file else None
    return StackCall(function(frame), location, frame.inlined)


def function(frame: Frame) -> Step:
    """Return the step of a frame. A function without a name has its address as its name.

    The module of a Python function is its file.
    """
    if frame.function:
        return Step(frame.function, (frame.module == PYTHON and frame.file) or frame.module)
    name = f"{frame.module}+{frame.offset:#x}" if frame.module else f"{frame.address:#x}"
    return Step(name, frame.module, number=frame.address)


def _own_wait(lock: str) -> StackCall:
    return StackCall(Step(f"while it waited for {lock}", kind=StepKind.UNKNOWN))


def _ends(snapshot: Snapshot) -> dict[int, StackCall]:
    """Return the end of the branches to each lock: the lock, or its class if that is large."""
    ends = {lock.id: _end(lock.name, lock.kind, number=lock.id) for lock in snapshot.locks}
    for group in lock_classes.find(snapshot.locks):
        if len(group.locks) > _MAX_SEPARATE_LOCKS:
            ends.update(dict.fromkeys(group.locks, _end(f"{group.name}, many locks", group.kind)))
    return ends


def _end(name: str, kind: Kind, number: int = 0) -> StackCall:
    return StackCall(Step(name_with_kind(kind, name), kind=StepKind.LOCK, number=number))


# ---- sums ----


class _NodeSum(Struct):
    """The sums of a node while branches are added."""

    step: Step
    value: float = 0.0
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    inlined: bool = True
    estimate: bool = False
    locations: dict[SourceLine, float] = field(default_factory=dict)
    children: dict[Step, _NodeSum] = field(default_factory=dict)

    def add(self, value: float, idle: bool) -> None:
        if idle:
            self.idle += value
        else:
            self.value += value

    def add_own(self, value: float, idle: bool) -> None:
        if idle:
            self.own_idle += value
        else:
            self.own += value

    def add_location(self, call: StackCall, value: float) -> None:
        self.inlined = self.inlined and call.inlined
        if call.location is not None:
            self.locations[call.location] = self.locations.get(call.location, 0.0) + value

    def child(self, step: Step) -> _NodeSum:
        sum_of_step = self.children.get(step)
        if sum_of_step is None:
            sum_of_step = self.children[step] = _NodeSum(step)
        return sum_of_step

    def location(self) -> SourceLine | None:
        """Return the line with the most of the value."""
        if len(self.locations) < 2:
            return next(iter(self.locations), None)
        return max(self.locations, key=lambda line: self.locations[line])

    def frozen(self) -> Node:
        """Return the node, without recursion: a stack from a file may have any depth."""
        order = [self]
        for node in order:
            if node.children:
                order += node.children.values()
        done: dict[int, Node] = {}
        for node in reversed(order):
            children = [done[id(child)] for child in node.children.values()]
            if len(children) > 1:
                children.sort(key=most_first)
            done[id(node)] = Node(
                step=node.step,
                value=node.value,
                own=node.own,
                idle=node.idle,
                own_idle=node.own_idle,
                location=node.location(),
                inlined=node.inlined,
                children=tuple(children),
                estimate=node.estimate,
            )
        return done[id(self)]


def most_first(item: Node | Wing) -> tuple[float, float, Step]:
    """Return the sort key of nodes and wings. Equal values are in the order of their names, so that
    the order stays the same."""
    return -item.value, -item.idle, item.step


class _ButterflySum:
    """The sums of a butterfly while branches are added."""

    def __init__(self, step: Step) -> None:
        self._middle = _NodeSum(step)
        self._callers: dict[Step, _NodeSum] = {}
        self._callees: dict[Step, _NodeSum] = {}

    def add(self, branch: Branch) -> None:
        """Add one stack, once for each caller and each callee in the stack."""
        step, calls = self._middle.step, branch.calls
        mine = [index for index, call in enumerate(calls) if call.step == step]
        if not mine:
            return
        above = {calls[index - 1].step: calls[index - 1] for index in mine if index}
        below = {
            calls[index + 1].step: calls[index + 1] for index in mine if index + 1 < len(calls)
        }
        self._middle.add(branch.value, branch.idle)
        self._middle.add_location(calls[mine[-1]], branch.value)
        # A lock has all parts of a divided wait.
        self._middle.estimate |= calls[mine[0]].estimate and step.kind is not StepKind.LOCK
        is_end = mine[-1] == len(calls) - 1 and step.kind is StepKind.FUNCTION
        if is_end or any(other.kind is StepKind.LOCK for other in below):
            self._middle.add_own(branch.value, branch.idle)
        for sums, calls_by_step in ((self._callers, above), (self._callees, below)):
            for other, call in calls_by_step.items():
                wing = sums.setdefault(other, _NodeSum(other))
                wing.add(branch.value, branch.idle)
                wing.add_location(call, branch.value)
                wing.estimate |= call.estimate

    def frozen(self) -> Butterfly:
        """Return the butterfly."""
        middle = self._middle
        return Butterfly(
            step=middle.step,
            value=middle.value,
            own=middle.own,
            idle=middle.idle,
            own_idle=middle.own_idle,
            location=middle.location(),
            callers=_wings(self._callers),
            callees=_wings(self._callees),
            estimate=middle.estimate,
        )


def _wings(sums: Mapping[Step, _NodeSum]) -> tuple[Wing, ...]:
    wings = [
        Wing(wing.step, wing.value, wing.idle, wing.location(), wing.inlined, wing.estimate)
        for wing in sums.values()
    ]
    return tuple(sorted(wings, key=most_first))
