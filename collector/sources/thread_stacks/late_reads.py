"""Stacks of threads that went on while the scan read them, a moment later and one by one.

A scan reads all threads, then their stacks. A thread of a busy program waits for some milliseconds
only, so its stack comes too late. Read alone, right after its call, such a stack is right.
"""

from __future__ import annotations

from contextlib import closing

from locktop.collector.errors import LocktopError
from locktop.collector.linux.target import find_process
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Frame, Snapshot, Thread
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.resolver import Resolver

#: Seconds for all stacks; those of running threads; and for their names.
_BUDGET_S, _RUNNING_S, _NAMES_S = 2.0, 0.1, 10.0


def read(snapshot: Snapshot, pid: int) -> dict[int, tuple[Frame, ...]]:
    """Return by tid the stacks that can be read now of the threads without a known stack.

    Args:
        snapshot: a scan of this moment, with all names.
        pid: the process, as locktop's own pid namespace has it.
    """
    tids = [thread.tid for thread in snapshot.threads if _may_have_stack(thread)]
    if not tids or snapshot.ended or snapshot.stopped:
        return {}
    try:
        target = find_process(pid)
        with closing(KernelThreads(pid, target.own_pid)) as tasks, closing(Resolver(pid)) as names:
            return _read(tids, tasks, NativeStacks(pid, names), names)
    except (LocktopError, OSError):
        return {}  # the process has ended


def _may_have_stack(thread: Thread) -> bool:
    is_stopped = thread.now is not None and thread.now.doing is ActivityState.STOPPED
    return thread.alive and not thread.pid and not thread.stack and not is_stopped


def _read(
    tids: list[int], tasks: KernelThreads, stacks: NativeStacks, names: Resolver
) -> dict[int, tuple[Frame, ...]]:
    kernel_tids = {tid: tasks.kernel_tid(tid) for tid in tids}
    stacks.begin(_BUDGET_S)
    ids: dict[int, int] = {}
    is_progress = True
    while is_progress and len(ids) < len(tids) and stacks.has_time:
        before = len(ids)
        for tid in kernel_tids.keys() - ids.keys():
            if stack := stacks.stack_id(kernel_tids[tid], object()):
                ids[tid] = stack
        left = {kernel_tids[tid]: tid for tid in kernel_tids.keys() - ids.keys()}
        running = stacks.running(list(left), _RUNNING_S)
        ids |= {left[kernel_tid]: stack for kernel_tid, stack in running.items()}
        is_progress = len(ids) > before
    for stack in ids.values():
        stacks.frames(stack)  # requests the names
    names.wait(_NAMES_S)
    return {tid: stacks.frames(stack) for tid, stack in ids.items()}
