"""The stacks of threads that wait for Python's interpreter lock (GIL), and wake every 5 ms.

A scan reads a stack only where the thread sleeps on until its end. A waiter for a GIL that another
thread keeps cannot go on. So its stack is the same whenever the thread sleeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import DeadlockEdge, Draft, Thread
from locktop.collector.model.kinds import INTERPRETER_LOCK_KINDS
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.python.interpreter import waits_for_interpreter

_BUDGET_S = 0.5  # most threads sleep within 5 ms
_MAX_THREADS = 16


class NamedStacks(Protocol):
    """A scan that can complete the stacks of its draft."""

    draft: Draft
    resolve: bool  # whether it waits for all names

    def add_stacks(self) -> None:
        """Fill in the frames of new stacks."""

    def resolve_names(self) -> None:
        """Wait for their names."""


def annotate(scan: NamedStacks, tasks: KernelThreads, stacks: NativeStacks) -> None:
    """Give the waits for a GIL with a known holder the stacks that they lack.

    Also read the Python functions of all such waits. Without the holder each of their calls was a
    wait, and too brief for that.

    Args:
        scan: with the holders of the GIL; it waits for the names of the new stacks.
        tasks: the threads of the process.
        stacks: reads stacks.
    """
    if not scan.resolve:
        return
    before = scan.draft.threads
    late = _read(scan.draft, tasks, stacks)
    scan.draft.threads = _threads_with(before, late)
    scan.add_stacks()
    scan.resolve_names()
    # A thread may have got the GIL meanwhile.
    former, frames = {thread.tid: thread for thread in before}, scan.draft.stacks
    over = {tid for tid, stack in late.items() if not waits_for_interpreter(frames.get(stack, ()))}
    scan.draft.threads = tuple([
        former[thread.tid] if thread.tid in over else thread for thread in scan.draft.threads
    ])  # fmt: skip
    late = {thread.tid: thread.stack for thread in scan.draft.threads if thread.tid in late}
    scan.draft.deadlocks = tuple([
        replace(deadlock, cycle=tuple([_edge_with(edge, late) for edge in deadlock.cycle]))
        for deadlock in scan.draft.deadlocks
    ])  # fmt: skip


def _read(draft: Draft, tasks: KernelThreads, stacks: NativeStacks) -> dict[int, int]:
    """Return the ids of the stacks that waits with a holder lack, by tid."""
    late = [
        thread.tid
        for thread in draft.threads
        if (wait := thread.waiting_for) is not None
        and wait.kind in INTERPRETER_LOCK_KINDS
        and wait.holders
        and not wait.stack
    ][:_MAX_THREADS]
    ids: dict[int, int] = {}
    stacks.begin(_BUDGET_S)
    while len(ids) < len(late) and stacks.has_time:
        for tid in late:
            if tid not in ids and (stack := stacks.stack_id(tasks.kernel_tid(tid), object())):
                ids[tid] = stack
    return ids


def _threads_with(threads: Sequence[Thread], stacks: Mapping[int, int]) -> tuple[Thread, ...]:
    """Return the threads with these stacks of their waits, by tid."""
    return tuple([
        replace(thread, waiting_for=replace(thread.waiting_for, stack=stacks[thread.tid]))
        if thread.tid in stacks and thread.waiting_for is not None else thread
        for thread in threads
    ])  # fmt: skip


def _edge_with(edge: DeadlockEdge, stacks: Mapping[int, int]) -> DeadlockEdge:
    return replace(edge, stack=stacks[edge.tid]) if edge.tid in stacks else edge
