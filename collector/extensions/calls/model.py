"""The trees of function calls that the library counted in an instrumented program."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.model import Snapshot

#: The name of the extension: the key of the trees in ``Snapshot.sections``.
NAME = "calls"


class CallNode(Struct, frozen=True, gc=False):
    """All calls of one function that came from the same chain of callers.

    Times are seconds, and include calls that go on. The time of a call that was
    too short for the library's limit is part of the caller's ``own_s``.
    """

    #: Index of the caller's node in the tree, lower than its own; None: an outermost call.
    parent: int | None
    function: int  # id of a stack whose last frame is the function
    count: int  # calls, also those that go on
    total_s: float  # with callees
    own_s: float  # without callees
    wait_s: float = 0.0  # of total_s, in waits for locks
    short_count: int = 0  # calls that were too short for the limit
    active: bool = False  # one of the calls goes on


class CallTree(Struct, frozen=True, gc=False):
    """The calls of one thread, or of all threads that have ended.

    The ``own_s`` of the nodes add up to ``traced_s``.
    """

    tid: int  # 0: all threads that have ended
    name: str
    nodes: tuple[CallNode, ...]  # a caller comes before its callees
    traced_s: float = 0.0  # seconds in counted functions
    too_deep: int = 0  # calls beyond the depth limit
    left_out: int = 0  # calls that found no room, or interrupted the library
    unmatched: int = 0  # ends of calls whose begin was not seen


def calls_of(snapshot: Snapshot) -> tuple[CallTree, ...]:
    """Return the trees of a snapshot, in order of tid, then that of ended threads."""
    trees: tuple[CallTree, ...] = snapshot.sections.get(NAME, ())
    return trees
