"""Finds a process in /proc and returns the facts that identify the process."""

from __future__ import annotations

import os

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.sanitize import clean


class Target(Struct, frozen=True):
    """A process as /proc shows it."""

    pid: int
    own_pid: int  # the pid in the process's own pid namespace
    uid: int
    comm: str
    start_time: int  # clock ticks since boot

    def __str__(self) -> str:
        return f"{self.pid} ({self.comm})"


def find_process(pid: int) -> Target:
    """Return the process. Raises LocktopError when there is none that can be observed."""
    check_proc()
    try:
        if pid <= 0:
            raise ProcessLookupError
        status, stat_ = procfs.status(pid), procfs.stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        if _is_hidden(pid):
            raise _hidden(pid) from None
        raise LocktopError(f"no such process: {pid}") from None
    except PermissionError:
        raise _hidden(pid) from None
    if status.process != pid:
        raise LocktopError(f"{pid} is a thread of process {status.process}; give that pid")
    if stat_.state in "ZX" and status.threads < 2:
        raise LocktopError(f"process {pid} ({stat_.comm}) has exited")
    return Target(pid, status.namespace_pids[-1], status.uid, stat_.comm, stat_.start_time)


def check_proc() -> None:
    """Raise LocktopError if /proc belongs to another pid namespace."""
    if not procfs.counts_as_we_do():
        raise LocktopError(
            "/proc is of another pid namespace than locktop runs in: mount this one's"
            " (`mount -t proc proc /proc`), or run locktop outside"
        )


def _is_hidden(pid: int) -> bool:
    """Tell whether such a process exists, although /proc does not show it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    return pid > 0 and procfs.hides_others()


def _hidden(pid: int) -> LocktopError:
    return LocktopError(
        f"process {pid} is hidden from this user, because /proc is mounted with hidepid;"
        f" {ptrace_access.root_advice()}, or as a member of the group that the mount's gid= names"
    )


def user_name(uid: int) -> str:
    """Return a user's name with the uid, or the uid alone."""
    import pwd

    try:
        return f"{clean(pwd.getpwuid(uid).pw_name)} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
