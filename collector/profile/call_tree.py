"""Where the waiting comes from: a tree from the entries of the threads down to the locks waited
for, and a butterfly of the callers and callees of one function.

Both are sums over whole stacks, so every value belongs to its own branch. Frames of one function
are one node, whichever its lines; a function that calls itself is a node for each depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from locktop.collector.analysis import lock_classes
from locktop.collector.model import Frame, Kind, Lock, Snapshot, WaitStack
from locktop.collector.symbols.python.merge_stacks import PYTHON

#: What a snapshot can be weighed by: seconds waited, waits, seconds that holders let others wait.
WAIT, COUNT, BLAME = "wait", "count", "blame"

#: A class of more locks than these ends a branch as one: which of them it was tells little.
_MANY = 8
#: Counters are read one after the other: what differs by less has a stack.
_CLEARLY = 0.01


class Part(StrEnum):
    """What a node stands for."""

    FUNCTION = "function"
    LOCK = "lock"  # what was waited for: the end of a branch
    THREAD = "thread"  # whose hold it was
    UNKNOWN = "unknown"  # waits without a stack

    # Enum's own is written in Python, and steps are looked up for each frame of each stack.
    __hash__ = str.__hash__


class Step(NamedTuple):
    """A function, a lock or a thread, as the key by which nodes are told apart."""

    name: str
    module: str = ""
    part: Part = Part.FUNCTION
    #: Lock id or tid, 0 for a class of locks; of a function without a name its address.
    number: int = 0


NO_STACK = Step("no stack known", part=Part.UNKNOWN)


class Place(NamedTuple):
    """A line of the source."""

    file: str
    line: int


class Call(NamedTuple):
    """One frame of a branch."""

    step: Step
    place: Place | None = None
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One stack with its weight: the entry first, the lock last."""

    calls: tuple[Call, ...]
    value: float
    #: Waits for work: never added to contention.
    idle: bool = False


class Node(NamedTuple):
    """A function in one context, with all that was waited below it.

    ``own`` is the part of ``value`` that was waited in the function itself, for the locks that are
    its children; ``idle`` and ``own_idle`` are the same of waits for work, apart.
    """

    step: Step
    value: float
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    place: Place | None = None  # its line with the most of the value
    inlined: bool = False
    children: tuple[Node, ...] = ()  # the most first
    again: bool = False  # of an estimate: is on its own path already, so not followed


@dataclass(frozen=True, slots=True)
class Wing:
    """A caller or a callee: what of its function's value went through it."""

    step: Step
    value: float
    idle: float = 0.0
    place: Place | None = None  # of a caller its calling line, of a callee its own
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class Butterfly:
    """A function with its callers and callees; each stack counts once for each of them."""

    step: Step
    value: float
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    place: Place | None = None
    callers: tuple[Wing, ...] = ()  # the most first
    callees: tuple[Wing, ...] = ()


def branches(snapshot: Snapshot, weight: str) -> Iterator[Branch]:
    """Yield what was waited with the stack that it was waited in; ``weight``: WAIT, COUNT, BLAME.

    Raises ValueError for another weight.
    """
    if weight == BLAME:
        return _blamed(snapshot)
    if weight not in (WAIT, COUNT):
        raise ValueError(weight)
    return _waited(snapshot, weight)


def tree(found: Iterable[Branch]) -> Node:
    """Return a node without a function of its own, whose children are the entries."""
    root = _Growing(Step(""))
    for branch in found:
        node, above = root, root
        node.add(branch.value, branch.idle)
        for call in branch.calls:
            node, above = node.child(call.step), node
            node.add(branch.value, branch.idle)
            node.seen_at(call, branch.value)
        if node.step.part is Part.LOCK:
            above.add_own(branch.value, branch.idle)
    return root.frozen()


def butterfly(found: Iterable[Branch], step: Step) -> Butterfly:
    """Return ``step`` with its callers and callees."""
    sums = _Flutter(step)
    for branch in found:
        sums.add(branch)
    return sums.frozen()


def butterflies(found: Iterable[Branch]) -> dict[Step, Butterfly]:
    """Return the butterfly of every function, lock and thread."""
    sums: dict[Step, _Flutter] = {}
    for branch in found:
        for step in dict.fromkeys(call.step for call in branch.calls):
            sums.setdefault(step, _Flutter(step)).add(branch)
    return {step: one.frozen() for step, one in sums.items()}


def steps(root: Node) -> set[Step]:
    """Return every function, lock and thread of a tree."""
    found: set[Step] = set()
    line = list(root.children)
    while line:
        node = line.pop()
        found.add(node.step)
        line += node.children
    return found


# ---- from a snapshot to branches ----


def _waited(snapshot: Snapshot, weight: str) -> Iterator[Branch]:
    calls: dict[int, tuple[Call, ...]] = {}
    known: dict[int, Call] = {}
    ends = _ends(snapshot)
    for lock in snapshot.locks:
        end = ends[lock.id]
        for entry in lock.wait_stacks:
            value = entry.wait_s if weight == WAIT else entry.count
            if entry.stack not in calls:
                calls[entry.stack] = _calls(snapshot.stacks.get(entry.stack, ()), known)
            if value > 0:
                yield Branch((*calls[entry.stack], end), value, entry.idle)
        left = _without_stack(lock, lock.wait_stacks, weight)
        if left > 0:
            yield Branch((Call(NO_STACK), end), left, lock.idle)


def _without_stack(lock: Lock, known: Iterable[WaitStack], weight: str) -> float:
    """What was waited, says the lock, but in no stack that is known."""
    if weight == WAIT:
        whole, found = lock.wait_s, sum(entry.wait_s for entry in known)
    else:
        whole, found = float(lock.contended), float(sum(entry.count for entry in known))
    return whole - found if whole - found > whole * _CLEARLY else 0.0


def _blamed(snapshot: Snapshot) -> Iterator[Branch]:
    """A hold is known by one frame only, where the lock was taken, and by what it waited for."""
    names = {thread.tid: thread.name for thread in snapshot.threads}
    own = {lock.id: lock.name for lock in snapshot.locks}
    ends = _ends(snapshot)
    for lock in snapshot.locks:
        end = ends[lock.id]
        for blame in lock.blame:
            name = blame.nameless or names.get(blame.tid, "") or f"thread {blame.tid}"
            holder = Call(Step(name, part=Part.THREAD, number=blame.tid))
            frame = snapshot.sites.get(blame.site)
            site = (_call(frame),) if frame is not None else ()
            own_wait = (_own_wait(own[blame.through]),) if blame.through in own else ()
            if blame.wait_s > 0:
                yield Branch((holder, *site, *own_wait, end), blame.wait_s, lock.idle)


def _calls(frames: tuple[Frame, ...], known: dict[int, Call]) -> tuple[Call, ...]:
    """The frames of a stack; ``known`` has those of others, by identity: most share theirs."""
    calls = []
    for frame in reversed(frames):
        call = known.get(id(frame))
        if call is None:
            call = known[id(frame)] = _call(frame)
        calls.append(call)
    return tuple(calls) or (Call(NO_STACK),)


def _call(frame: Frame) -> Call:
    place = Place(frame.file, frame.line or 0) if frame.file else None
    return Call(function(frame), place, frame.inlined)


def function(frame: Frame) -> Step:
    """Return the key of a frame's function: its address where it has no name.

    Python's functions are of a file, as others are of a module.
    """
    if frame.function:
        return Step(frame.function, (frame.module == PYTHON and frame.file) or frame.module)
    name = f"{frame.module}+{frame.offset:#x}" if frame.module else f"{frame.address:#x}"
    return Step(name, frame.module, number=frame.address)


def _own_wait(lock: str) -> Call:
    return Call(Step(f"while it waited for {lock}", part=Part.UNKNOWN))


def _ends(snapshot: Snapshot) -> dict[int, Call]:
    """What a branch to each lock ends with: the lock, or its class where many are like it."""
    ends = {lock.id: _end(lock.name, lock.kind, number=lock.id) for lock in snapshot.locks}
    for of in lock_classes.fold(snapshot.locks):
        if len(of.locks) > _MANY:
            ends.update(dict.fromkeys(of.locks, _end(f"{of.name}, many locks", of.kind)))
    return ends


def _end(name: str, kind: Kind, number: int = 0) -> Call:
    name = name if name.startswith(kind) else f"{kind} {name}"
    return Call(Step(name, part=Part.LOCK, number=number))


# ---- sums ----


@dataclass(slots=True)
class _Growing:
    """A node while it is added up."""

    step: Step
    value: float = 0.0
    own: float = 0.0
    idle: float = 0.0
    own_idle: float = 0.0
    inlined: bool = True
    places: dict[Place, float] = field(default_factory=dict)
    children: dict[Step, _Growing] = field(default_factory=dict)

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

    def seen_at(self, call: Call, value: float) -> None:
        self.inlined = self.inlined and call.inlined
        if call.place is not None:
            self.places[call.place] = self.places.get(call.place, 0.0) + value

    def child(self, step: Step) -> _Growing:
        found = self.children.get(step)
        if found is None:
            found = self.children[step] = _Growing(step)
        return found

    def place(self) -> Place | None:
        if len(self.places) < 2:
            return next(iter(self.places), None)
        return max(self.places, key=lambda at: self.places[at])

    def frozen(self) -> Node:
        """Without recursion: a stack read from a file may be of any depth."""
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
                node.step,
                node.value,
                node.own,
                node.idle,
                node.own_idle,
                node.place(),
                node.inlined,
                tuple(children),
            )
        return done[id(self)]


def most_first(item: Node | Wing) -> tuple[float, float, Step]:
    """The order of nodes and of wings; of equals by name, so that it stays the same."""
    return -item.value, -item.idle, item.step


class _Flutter:
    """A butterfly while it is added up."""

    def __init__(self, step: Step) -> None:
        self._middle = _Growing(step)
        self._callers: dict[Step, _Growing] = {}
        self._callees: dict[Step, _Growing] = {}

    def add(self, branch: Branch) -> None:
        """Add one stack, once for each caller and each callee that it has in it."""
        step, calls = self._middle.step, branch.calls
        mine = [at for at, call in enumerate(calls) if call.step == step]
        if not mine:
            return
        above = {calls[at - 1].step: calls[at - 1] for at in mine if at}
        below = {calls[at + 1].step: calls[at + 1] for at in mine if at + 1 < len(calls)}
        self._middle.add(branch.value, branch.idle)
        self._middle.seen_at(calls[mine[-1]], branch.value)
        if any(other.part is Part.LOCK for other in below):
            self._middle.add_own(branch.value, branch.idle)
        for sums, found in ((self._callers, above), (self._callees, below)):
            for other, call in found.items():
                wing = sums.setdefault(other, _Growing(other))
                wing.add(branch.value, branch.idle)
                wing.seen_at(call, branch.value)

    def frozen(self) -> Butterfly:
        """Return the sums."""
        middle = self._middle
        return Butterfly(
            middle.step,
            middle.value,
            middle.own,
            middle.idle,
            middle.own_idle,
            middle.place(),
            _wings(self._callers),
            _wings(self._callees),
        )


def _wings(sums: Mapping[Step, _Growing]) -> tuple[Wing, ...]:
    wings = [Wing(one.step, one.value, one.idle, one.place(), one.inlined) for one in sums.values()]
    return tuple(sorted(wings, key=most_first))
