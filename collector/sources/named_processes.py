"""The processes with a name that the user typed."""

from __future__ import annotations

import os

from msgspec import Struct

from locktop.collector.linux import procfs
from locktop.collector.linux.command_line import program_names, program_words
from locktop.collector.linux.target import check_proc


class NamedProcess(Struct, frozen=True):
    """A process, and the names by which a user may mean it."""

    pid: int
    names: frozenset[str]
    command: str  # its script or program, with the arguments


def named_processes() -> list[NamedProcess]:
    """Return the processes that this user may see, but locktop itself.

    Raises:
        LocktopError: /proc is missing, or of another namespace.
    """
    check_proc()
    processes = []
    for pid in procfs.pids():
        try:
            arguments = procfs.cmdline(pid)
            comm = procfs.stat(pid).comm
        except (OSError, ValueError):
            continue  # it has ended
        if arguments and pid != os.getpid():
            command = " ".join(program_words(arguments)).strip()
            processes.append(NamedProcess(pid, program_names(comm, arguments), command))
    return processes
