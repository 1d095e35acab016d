"""Which right to look into a process is missing where the kernel refuses, and what gives it.

The rules are the kernel's, in the order in which it asks: ptrace(2), "Ptrace access mode checking".
To read where a process's files and memory lie and to see what its threads sleep in are two such
rights; Yama (kernel.yama.ptrace_scope) keeps back the second alone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from locktop.collector.linux import process_memory, procfs
from locktop.collector.linux.procfs import Credentials

HOW_TO_PRELOAD = (
    'start it with `locktop run -- COMMAND`, or after `eval "$(locktop env)"` in its shell'
)
_ANY_TRACER = "start the program with LOCKTOP_PTRACER=any in its environment"
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
#: Its values: 1, its ancestors and root may trace a process; 2, root; 3, nobody.
_ANCESTORS, _NOBODY = 1, 3
_CAP_SYS_PTRACE = 1 << 19


class Obstacle(Enum):
    """What stands between a process and who looks at it."""

    USER = auto()  # it is another user's
    GROUP = auto()  # its group is another
    USERS = auto()  # it is of several users or groups at once
    UNDUMPABLE = auto()  # PR_SET_DUMPABLE in prctl(2)
    NAMESPACE = auto()  # it lies in another user namespace
    CAPABILITIES = auto()  # it has some that we have not
    YAMA = auto()
    OTHER = auto()  # a security module, a filter of system calls


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """What the kernel goes by; None where it does not let us know."""

    ours: Credentials
    theirs: Credentials
    is_dumpable: bool | None = None
    same_namespace: bool | None = None
    scope: int = 0  # of Yama, 0 where there is none


def facts(pid: int) -> AccessFacts:
    """Return them. Raises OSError when the process is gone."""
    theirs = procfs.credentials(pid)
    # The kernel gives root the files of a process that is not dumpable.
    owner, user = os.stat(f"{procfs.shared(pid)}/status").st_uid, theirs.uids[1]
    return AccessFacts(
        ours=procfs.credentials("self"),
        theirs=theirs,
        is_dumpable=owner == user if user else None,
        same_namespace=procfs.in_our_namespace(pid, "user"),
        scope=yama_scope(),
    )


def yama_scope(path: str = _YAMA) -> int:
    """Return kernel.yama.ptrace_scope; 0, which forbids nothing, where the kernel has no Yama."""
    try:
        return int(procfs.read(path))
    except (OSError, ValueError):
        return 0


def obstacle(known: AccessFacts, to_trace: bool) -> Obstacle:
    """Return the first thing that the kernel refuses for. ``to_trace``: to see more than where its
    files and memory lie."""
    ours, theirs = known.ours, known.theirs
    scope = known.scope if to_trace else 0
    if ours.effective & _CAP_SYS_PTRACE and known.same_namespace is not False:
        return Obstacle.YAMA if scope >= _NOBODY else Obstacle.OTHER
    users, groups = set(theirs.uids[:3]), set(theirs.gids[:3])
    if len(users) > 1 or len(groups) > 1:
        return Obstacle.USERS
    if users != {ours.uids[3]}:
        return Obstacle.USER
    if groups != {ours.gids[3]}:
        return Obstacle.GROUP
    if known.is_dumpable is False:
        return Obstacle.UNDUMPABLE
    if known.same_namespace is False:
        return Obstacle.NAMESPACE
    if theirs.permitted & ~ours.effective:
        return Obstacle.CAPABILITIES
    if scope:
        return Obstacle.YAMA
    # What is asked for first has been granted where more is asked for.
    return Obstacle.OTHER if to_trace or known.is_dumpable else Obstacle.UNDUMPABLE


def refusal(pid: int, owner: str, to_trace: bool, watched: bool = False) -> str:
    """Return what follows "process 7 (x) ...": what stands in the way; what to do about it.

    ``owner``: whose it is, in words; ``watched``: it runs with the library.
    """
    try:
        known = facts(pid)
    except OSError:
        return "has exited"
    return describe(known, obstacle(known, to_trace), owner, watched)


def lost_insight(pid: int, owner: Callable[[], str], call: Callable[[], object]) -> str:
    """Return what is not seen of a process that runs with the library, why, and what to do about
    it; "" where all is. ``owner`` gives whose it is, which may take long; ``call`` asks in which
    system call one of its threads is (KernelThreads.call)."""
    try:
        call()
    except PermissionError:
        return _unseen(pid, owner())
    except OSError:
        return ""  # its first thread has ended
    refused = memory_refused(pid)
    return f"stacks from outside are not seen: {refused}" if refused else ""


def _unseen(pid: int, owner: str) -> str:
    unobserved_waits = "what the holders of locks do now, and stacks from outside, are not seen"
    to_trace = True
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        unobserved_waits, to_trace = f"functions and locks have no names; {unobserved_waits}", False
    except OSError:
        return ""  # it has ended
    return f"{unobserved_waits}: the process {refusal(pid, owner, to_trace, watched=True)}"


def memory_refused(pid: int) -> str:
    """Return why the memory of a process that may be traced cannot be read all the same; "" where
    it can."""
    number = process_memory.refusal(pid)
    if number in (0, errno.ESRCH):
        return ""
    return (
        f"its memory cannot be read ({os.strerror(number)}), for a filter of system calls forbids"
        " process_vm_readv here: allow that, or run locktop outside of the container"
    )


def describe(known: AccessFacts, found: Obstacle, owner: str, watched: bool) -> str:
    """Return the text of refusal()."""
    if found is Obstacle.YAMA:
        return _yama_words(known, watched)
    what = _WHAT[found].format(owner=owner, group=known.theirs.gids[1])
    if not known.ours.uids[1] and found in (Obstacle.NAMESPACE, Obstacle.OTHER):
        return f"{what}; run locktop outside of containers, or allow it there"
    return f"{what}; {_cure(known, found, watched)}"


_WHAT = {
    Obstacle.USER: "belongs to user {owner}",
    Obstacle.GROUP: "runs with another group (gid {group}) than this user",
    Obstacle.USERS: "has the rights of several users or groups",
    Obstacle.UNDUMPABLE: "lets nobody but root (CAP_SYS_PTRACE) look into it (it changed its user,"
    " forbade it by prctl, or its program file may not be read)",
    Obstacle.NAMESPACE: "runs in another user namespace",
    Obstacle.CAPABILITIES: "has capabilities that this user lacks",
    Obstacle.OTHER: "may not be looked into: a security module (AppArmor, SELinux), a filter of system"
    " calls or a user namespace forbids it",
}


def _cure(known: AccessFacts, found: Obstacle, watched: bool) -> str:
    """What its user or root may do they may do without the library only where Yama lets them."""
    root, theirs = _as_root(known.ours), known.theirs
    with_library = ""
    if known.scope and not watched:
        with_library = f" if it runs with the library (kernel.yama.ptrace_scope is {known.scope})"
    # Where the user itself would be refused next, that is no remedy.
    its_user = not theirs.permitted and known.is_dumpable is not False and theirs.uids[1]
    if found is Obstacle.USER and its_user:
        if not known.ours.uids[1] or (known.scope and known.scope < _NOBODY):
            return f"{root}, or as that user{with_library}"
        return f"run locktop as that user or as root{with_library}"
    return root + (with_library if known.scope >= _NOBODY else "")


def _yama_words(known: AccessFacts, watched: bool) -> str:
    if known.scope >= _NOBODY:
        who, cures = "nobody until the next boot", []
    elif known.scope == _ANCESTORS:
        who, cures = "root and its ancestors alone", [_as_root(known.ours), "set that to 0"]
    else:
        who, cures = "root alone", [_as_root(known.ours), "set that to 0"]
    if not watched:
        cures.append(HOW_TO_PRELOAD)
    elif known.scope == _ANCESTORS:
        cures.append(_ANY_TRACER)
    cure = "; " + ", or ".join(cures) if cures else ""
    without = "" if watched else "runs without the library, and "
    return f"{without}may be traced by {who} (kernel.yama.ptrace_scope is {known.scope}){cure}"


def as_root() -> str:
    """Return what root, or one with root's rights, is to do."""
    return _as_root(procfs.credentials("self"))


def _as_root(ours: Credentials) -> str:
    if ours.uids[1]:
        return "run locktop as root"
    if ours.effective & _CAP_SYS_PTRACE:
        return "run locktop as the root outside of this user namespace"
    # As in most containers.
    return (
        "root lacks the capability CAP_SYS_PTRACE here: run locktop where it has that (outside of"
        " the container, or with `--cap-add SYS_PTRACE`)"
    )
