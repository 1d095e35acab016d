"""The call trees in the document of a snapshot."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from locktop.collector.render.documents.snapshot_fields import Count, Number, StackId, Tid, meaning


class CallNodeEntry(Struct, kw_only=True, gc=False):
    """All calls of one function that came from the same chain of callers."""

    parent: Annotated[
        Count | None, meaning("The index of the caller's node; null: an outermost call.")
    ] = None
    function: Annotated[
        StackId, meaning('The number of a stack in "stacks" whose last frame is the function.')
    ]
    count: Annotated[Count, meaning("Calls, also those that go on.")] = 0
    total_s: Annotated[Number, meaning("Seconds in these calls, with callees.")] = 0.0
    own_s: Annotated[Number, meaning("Seconds in these calls, without callees.")] = 0.0
    wait_s: Annotated[Number, meaning("Of total_s, the seconds in waits for locks.")] = 0.0
    short_count: Annotated[Count, meaning("Calls too short for LOCKTOP_CALLS_MIN_US.")] = 0
    active: Annotated[bool, meaning("One of the calls goes on.")] = False


class CallTreeEntry(Struct, kw_only=True, gc=False):
    """The function calls of a thread."""

    tid: Annotated[Tid, meaning("The thread; 0: all threads that have ended.")]
    name: Annotated[str, meaning("The name of the thread.")] = ""
    nodes: Annotated[list[CallNodeEntry], meaning("The call tree, callers first.")] = []
    traced_s: Annotated[Number, meaning("Seconds in counted functions.")] = 0.0
    too_deep: Annotated[Count, meaning("Calls beyond the depth limit.")] = 0
    left_out: Annotated[Count, meaning("Calls that found no room.")] = 0
    unmatched: Annotated[Count, meaning("Ends of calls whose begin was not counted.")] = 0
