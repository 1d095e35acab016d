"""The part of a scan that reads the function calls."""

from __future__ import annotations

from locktop.collector.extensions.calls.call_builder import CallBuilder
from locktop.collector.extensions.calls.call_trees import CallTrees
from locktop.collector.extensions.calls.model import NAME
from locktop.collector.model import Draft
from locktop.collector.shm.reader import Reading
from locktop.collector.sources.preload.session_part import SessionContext, SessionPart


class CallReader(SessionPart):
    """Reads the call trees of one program. See SessionPart."""

    def __init__(self, context: SessionContext) -> None:
        self._frames = context.frames
        trees = CallTrees(context.memory, context.clock.now)
        self._calls = CallBuilder(trees, context.clock, self._frames.site_id)
        self._unloads = 0

    def build(self, draft: Draft, reading: Reading) -> None:
        if self._unloads != reading.header.unloads:
            self._unloads = reading.header.unloads
            self._calls.forget()
        living = {thread.tid: thread for thread in draft.threads if thread.alive}
        trees = self._calls.build(reading.threads, living, reading.control.calls)
        if trees:
            draft.sections = {**draft.sections, NAME: trees}
            functions = {node.function for tree in trees for node in tree.nodes}
            frames = {stack: self._frames.frames(stack) for stack in sorted(functions)}
            draft.stacks = {**draft.stacks, **frames}
