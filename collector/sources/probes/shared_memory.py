"""Which processes share a part of memory, and which thread a thread id in that memory means."""

from __future__ import annotations

import os

from locktop.collector.linux import procfs
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.memory_map import Mapping

_ROOT_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO (include/linux/proc_ns.h)
_ANONYMOUS = "/dev/zero"


def are_in_one_namespace(pid: int, mapping: Mapping) -> bool:
    """Return whether all processes that may share the memory have the same pid namespace.

    Processes whose maps locktop may not read are left out.

    Args:
        pid: a process that has mapped the memory.
        mapping: the memory.

    Raises:
        OSError: the process has ended, or its pid namespace is not known.
    """
    ours = os.readlink("/proc/self/ns/pid")
    # Processes inherit anonymous memory; a file may come from another container.
    if ours != _ROOT_NAMESPACE and not mapping.path.startswith(_ANONYMOUS):
        return False
    wanted = _namespace(pid)
    for other in procfs.pids():
        try:
            if _namespace(other) != wanted and shares(other, mapping):
                return False
        except OSError:
            continue  # it has ended, or belongs to another user
    return True


def shares(pid: int, mapping: Mapping, offset: int | None = None) -> bool:
    """Return whether a process has mapped the memory.

    Args:
        pid: the process.
        mapping: the memory, in another process.
        offset: a place in the file that the process must have mapped too.

    Raises:
        OSError: the process has ended, or locktop may not read its maps.
    """
    return any(
        other.shared
        and (other.device, other.inode) == (mapping.device, mapping.inode)
        and (offset is None or other.offset <= offset < other.offset + other.end - other.start)
        for other in memory_map.parse(procfs.maps(pid))
    )


def find_thread(pid: int, tid: int) -> tuple[int, int] | None:
    """Return the thread that has an id in the pid namespace of a process.

    Args:
        pid: the process.
        tid: the id.

    Returns:
        process and thread in locktop's own pid namespace; None: there is no such thread, or
        locktop does not see it.

    Raises:
        OSError: the process has ended, or its pid namespace is not known.
    """
    if _counts_as_we_do(pid):
        try:
            return procfs.status(tid).process, tid
        except OSError:
            return None
    wanted = _namespace(pid)
    for other in procfs.pids():
        try:
            if _counts_as_we_do(other) or _namespace(other) != wanted:
                continue
            for kernel_tid in procfs.tids(other):
                if procfs.own_tid(other, kernel_tid) == tid:
                    return other, kernel_tid
        except OSError:
            continue  # it has ended, or belongs to another user
    return None


def sees_all_threads_of(pid: int) -> bool:
    """Return whether locktop sees every thread in the pid namespace of a process."""
    return _counts_as_we_do(pid) and (os.geteuid() == 0 or not procfs.hides_others())


def _counts_as_we_do(pid: int) -> bool:
    return len(procfs.status(pid).namespace_pids) == 1


def _namespace(pid: int) -> str:
    return os.readlink(f"{procfs.shared_directory(pid)}/ns/pid")
