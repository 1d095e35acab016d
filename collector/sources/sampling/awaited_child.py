"""The child for which a thread of the watched process waits: its end, or a pipe to it.

Each scan reads anew, and only from /proc and, for poll(), from the memory of the process.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from locktop.collector.linux import open_files, process_memory, procfs, syscalls
from locktop.collector.linux.open_files import OpenFiles
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import AwaitedChild, ChildEvent

#: Threads and children that are looked at, the oldest first.
_MAX_THREADS, _MAX_CHILDREN = 8, 4
_P_ALL, _P_PID = 0, 1  # waitid(2)
_READS, _WRITES = frozenset({"read", "readv"}), frozenset({"write", "writev"})
_POLLED = struct.Struct("=ihh")  # struct pollfd
_MAX_POLLED = 16
_POLLIN = 1
_ZOMBIE = "Z"


def find(pid: int) -> AwaitedChild | None:
    """Return the child for which a thread of a process waits without a time limit, else None.

    Args:
        pid: the process.
    """
    for tid in sorted(procfs.tids(pid))[:_MAX_THREADS]:
        with suppress(OSError, ValueError):
            call = syscalls.parse(procfs.thread_syscall(pid, tid))
            if call is not None and call.arguments and (child := _child_of_call(pid, tid, call)):
                return child
    return None


def _child_of_call(pid: int, tid: int, call: SystemCall) -> AwaitedChild | None:
    name = syscalls.name(call.number)
    first, second, third = call.arguments[:3]
    if name == "wait4":
        return _end(pid, tid, max(_int32(first), 0))
    if name == "waitid" and first in (_P_ALL, _P_PID):
        return _end(pid, tid, second & 0xFFFFFFFF if first == _P_PID else 0)
    if name in _READS:
        return _pipe(pid, tid, [first & 0xFFFFFFFF], ChildEvent.OUTPUT)
    if name in _WRITES:
        return _pipe(pid, tid, [first & 0xFFFFFFFF], ChildEvent.INPUT)
    if name == "poll" and _int32(third) < 0 and 0 < second <= _MAX_POLLED:
        polled = list(_POLLED.iter_unpack(process_memory.read(pid, first, second * _POLLED.size)))
        if all(events & _POLLIN for fd, events, _ in polled if fd >= 0):
            return _pipe(pid, tid, [fd for fd, _, _ in polled if fd >= 0], ChildEvent.OUTPUT)
    return None


def _int32(word: int) -> int:
    """Return the low 32 bits of an argument as a signed number."""
    low = word & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _end(pid: int, tid: int, number: int) -> AwaitedChild | None:
    """Return the child whose end a thread waits for.

    Args:
        pid: the process.
        tid: the thread.
        number: the id of the child as the process knows it; 0 for any child.
    """
    children = list(_children(pid))
    if number:
        level = len(procfs.status(pid).namespace_pids) - 1
        children = [
            child for child in children if procfs.status(child).namespace_pids[level] == number
        ]
    return _child_record(pid, tid, children, ChildEvent.END)


def _pipe(pid: int, tid: int, fds: Sequence[int], event: ChildEvent) -> AwaitedChild | None:
    """Return the child that has the other end of the pipes, if children have that of each."""
    pipes = [os.readlink(f"{procfs.shared_directory(pid)}/fd/{fd}") for fd in fds]
    if not pipes or not all(pipe.startswith("pipe:") for pipe in pipes):
        return None
    children = list(_children(pid))[:_MAX_CHILDREN]
    files = open_files.read_all(children)
    with_each = [
        child for child in children if all(_has_end(files, child, pipe, event) for pipe in pipes)
    ]
    return _child_record(pid, tid, with_each, event)


def _has_end(files: OpenFiles, child: int, pipe: str, event: ChildEvent) -> bool:
    return any(
        file.pid == child and (file.writes if event is ChildEvent.OUTPUT else file.reads)
        for file in files.by_target.get(pipe, ())
    )


def _children(pid: int) -> Iterator[int]:
    """Yield the living children of a process, of each thread the oldest first."""
    for tid in procfs.tids(pid):
        with suppress(OSError):
            for word in procfs.read(f"/proc/{pid}/task/{tid}/children").split():
                with suppress(OSError, ValueError):
                    if procfs.stat(int(word)).state != _ZOMBIE:
                        yield int(word)


def _child_record(
    pid: int, tid: int, children: Sequence[int], event: ChildEvent
) -> AwaitedChild | None:
    if not children:
        return None
    return AwaitedChild(
        waiter=procfs.thread_stat(pid, tid).comm,
        pid=children[0],
        comm=procfs.stat(children[0]).comm,
        others=len(children) - 1,
        event=event,
    )
