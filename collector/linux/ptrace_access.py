"""Explains which right to observe a process is missing, and how the user can get that right.

The rules and their order are the kernel's: ptrace(2), "Ptrace access mode checking". One right is
to read where the files and the memory of a process lie. A second right is to read in which calls
its threads sleep. Yama (kernel.yama.ptrace_scope) refuses only the second right.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

from msgspec import Struct

from locktop.collector.linux import process_memory, procfs
from locktop.collector.linux.procfs import Credentials

HOW_TO_PRELOAD = (
    'start it with `locktop run -- COMMAND`, or after `eval "$(locktop env)"` in its shell'
)
_ANY_TRACER = "start the program with LOCKTOP_PTRACER=any in its environment"
_NO_MAIN_THREAD = "has lost its main thread; run locktop as root, who may read the other threads"
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
#: Values of _YAMA: 1, ancestors and root may trace a process; 2, only root; 3, nobody.
_ANCESTORS, _NOBODY = 1, 3
_CAP_SYS_PTRACE = 1 << 19


class Obstacle(Enum):
    """The reason for which the kernel refuses access to a process."""

    USER = auto()  # another user owns the process
    GROUP = auto()  # the process has another group
    USERS = auto()  # the process has several users or groups
    UNDUMPABLE = auto()  # PR_SET_DUMPABLE in prctl(2)
    NAMESPACE = auto()  # the process is in another user namespace
    CAPABILITIES = auto()  # the process has capabilities that we lack
    YAMA = auto()
    OTHER = auto()  # a security module, a filter of system calls


class AccessFacts(Struct, frozen=True):
    """The facts on which the kernel decides; None where the kernel hides a fact."""

    ours: Credentials
    theirs: Credentials
    is_dumpable: bool | None = None
    same_namespace: bool | None = None
    scope: int = 0  # of Yama, 0 where there is none


def facts(pid: int) -> AccessFacts:
    """Return the facts about a process. Raises OSError when the process is gone."""
    theirs = procfs.credentials(pid)
    # If a process is not dumpable, its files in /proc belong to root.
    owner, user = os.stat(f"{procfs.shared_directory(pid)}/status").st_uid, theirs.uids[1]
    return AccessFacts(
        ours=procfs.credentials("self"),
        theirs=theirs,
        is_dumpable=owner == user if user else None,
        same_namespace=procfs.shares_namespace(pid, "user"),
        scope=yama_scope(),
    )


def yama_scope(path: str = _YAMA) -> int:
    """Return kernel.yama.ptrace_scope; 0, which forbids nothing, if the kernel has no Yama."""
    try:
        return int(procfs.read(path))
    except (OSError, ValueError):
        return 0


def obstacle(facts_: AccessFacts, to_trace: bool) -> Obstacle:
    """Return the first reason of the kernel to refuse access.

    ``to_trace``: the wanted access is more than the places of files and memory.
    """
    ours, theirs = facts_.ours, facts_.theirs
    scope = facts_.scope if to_trace else 0
    if ours.effective & _CAP_SYS_PTRACE and facts_.same_namespace is not False:
        return Obstacle.YAMA if scope >= _NOBODY else Obstacle.OTHER
    users, groups = set(theirs.uids[:3]), set(theirs.gids[:3])
    if len(users) > 1 or len(groups) > 1:
        return Obstacle.USERS
    if users != {ours.uids[3]}:
        return Obstacle.USER
    if groups != {ours.gids[3]}:
        return Obstacle.GROUP
    if facts_.is_dumpable is False:
        return Obstacle.UNDUMPABLE
    if facts_.same_namespace is False:
        return Obstacle.NAMESPACE
    if theirs.permitted & ~ours.effective:
        return Obstacle.CAPABILITIES
    if scope:
        return Obstacle.YAMA
    # Tracing is tried only after the kernel has granted the smaller right.
    return Obstacle.OTHER if to_trace or facts_.is_dumpable else Obstacle.UNDUMPABLE


def forbids_tracing(pid: int) -> bool:
    """Return whether the kernel would refuse to let us trace a process, without asking for that.

    Raises:
        OSError: the process has ended.
    """
    return obstacle(facts(pid), to_trace=True) is not Obstacle.OTHER


def refusal(pid: int, owner: str, to_trace: bool, watched: bool = False) -> str:
    """Return the text after "process 7 (x) ...": the obstacle, then the remedy.

    Args:
        pid: the process.
        owner: the name of the process's user.
        to_trace: see obstacle().
        watched: the process runs with the library.
    """
    try:
        facts_ = facts(pid)
        obstacle_ = obstacle(facts_, to_trace)
        if obstacle_ in (Obstacle.OTHER, Obstacle.UNDUMPABLE) and not _has_memory(f"/proc/{pid}"):
            return "is ending" if is_ending(pid) else _NO_MAIN_THREAD
    except OSError:
        return "has exited"
    return describe(facts_, obstacle_, owner, watched)


def is_ending(pid: int) -> bool:
    """Return whether all threads of a process have ended or are about to.

    A process that ends gives its memory up first. Then its files belong to root, as if the process
    were undumpable. Its threads end one by one.

    Raises:
        OSError: The process has ended.
    """
    for tid in procfs.tids(pid):
        with suppress(OSError):  # this thread has ended
            end = procfs.thread_end(pid, tid)
            if not (end.exits or end.is_killed):
                return False
    return True


def _has_memory(directory: str) -> bool:
    return not procfs.read(f"{directory}/statm").startswith(b"0 ")


def lost_insight(pid: int, owner: Callable[[], str], call: Callable[[], object]) -> str:
    """Return which data about a process with the library are missing, why, and the remedy.

    Args:
        pid: the process.
        owner: returns the name of the process's user; the call may take long.
        call: queries the system call of one of its threads (KernelThreads.call).

    Returns: "" if no data are missing.
    """
    try:
        call()
    except PermissionError:
        return _unobserved_text(pid, owner())
    except OSError:
        return ""  # its first thread has ended
    refused = memory_refusal(pid)
    return f"unwound stacks are missing: {refused}" if refused else ""


def _unobserved_text(pid: int, owner: str) -> str:
    missing = "activities of holders, and unwound stacks, are missing"
    to_trace = True
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        missing, to_trace = f"functions and locks have no names; {missing}", False
    except OSError:
        return ""  # the process has ended
    return f"{missing}: the process {refusal(pid, owner, to_trace, watched=True)}"


def memory_refusal(pid: int) -> str:
    """Return why the memory of a traceable process cannot be read; "" if it can be read."""
    number = process_memory.refusal(pid)
    if number in (0, errno.ESRCH):
        return ""
    return (
        f"its memory cannot be read ({os.strerror(number)}), because a filter of system calls"
        " forbids process_vm_readv here: allow that call, or run locktop outside of the container"
    )


def describe(facts_: AccessFacts, obstacle_: Obstacle, owner: str, watched: bool) -> str:
    """Return the text of refusal()."""
    if obstacle_ is Obstacle.YAMA:
        return _yama_text(facts_, watched)
    text = _OBSTACLE_TEXTS[obstacle_].format(owner=owner, group=facts_.theirs.gids[1])
    if not facts_.ours.uids[1] and obstacle_ in (Obstacle.NAMESPACE, Obstacle.OTHER):
        return f"{text}; run locktop outside of containers, or allow it there"
    return f"{text}; {_remedy(facts_, obstacle_, watched)}"


_OBSTACLE_TEXTS = {
    Obstacle.USER: "belongs to user {owner}",
    Obstacle.GROUP: "runs with another group (gid {group}) than this user",
    Obstacle.USERS: "has the rights of several users or groups",
    Obstacle.UNDUMPABLE: "lets only root (CAP_SYS_PTRACE) read it (the process changed its user,"
    " or forbade it by prctl, or its program file may not be read)",
    Obstacle.NAMESPACE: "runs in another user namespace",
    Obstacle.CAPABILITIES: "has capabilities that this user lacks",
    Obstacle.OTHER: "may not be read: a security module (AppArmor, SELinux), a filter of"
    " system calls or a user namespace forbids it",
}


def _remedy(facts_: AccessFacts, obstacle_: Obstacle, watched: bool) -> str:
    """Return what the user can do. Without the library, Yama limits also the owner and root."""
    root, theirs = _root_advice(facts_.ours), facts_.theirs
    with_library = ""
    if facts_.scope and not watched:
        with_library = f" if it runs with the library (kernel.yama.ptrace_scope is {facts_.scope})"
    # If the kernel would refuse the owner too, to become the owner is no remedy.
    its_user = not theirs.permitted and facts_.is_dumpable is not False and theirs.uids[1]
    if obstacle_ is Obstacle.USER and its_user:
        if not facts_.ours.uids[1] or (facts_.scope and facts_.scope < _NOBODY):
            return f"{root}, or as that user{with_library}"
        return f"run locktop as that user or as root{with_library}"
    return root + (with_library if facts_.scope >= _NOBODY else "")


def _yama_text(facts_: AccessFacts, watched: bool) -> str:
    if facts_.scope >= _NOBODY:
        tracers, remedies = "nobody until the next boot", []
    elif facts_.scope == _ANCESTORS:
        tracers, remedies = (
            "root and its ancestors alone",
            [_root_advice(facts_.ours), "set that to 0"],
        )
    else:
        tracers, remedies = "root alone", [_root_advice(facts_.ours), "set that to 0"]
    if not watched:
        remedies.append(HOW_TO_PRELOAD)
    elif facts_.scope == _ANCESTORS:
        remedies.append(_ANY_TRACER)
    remedy = "; " + ", or ".join(remedies) if remedies else ""
    without = "" if watched else "runs without the library, and "
    return (
        f"{without}may be traced by {tracers} (kernel.yama.ptrace_scope is {facts_.scope}){remedy}"
    )


def root_advice() -> str:
    """Return the advice to run locktop with root's rights."""
    return _root_advice(procfs.credentials("self"))


def _root_advice(ours: Credentials) -> str:
    if ours.uids[1]:
        return "run locktop as root"
    if ours.effective & _CAP_SYS_PTRACE:
        return "run locktop as the root outside of this user namespace"
    # As in most containers.
    return (
        "root lacks the capability CAP_SYS_PTRACE here: run locktop where it has that (outside of"
        " the container, or with `--cap-add SYS_PTRACE`)"
    )
