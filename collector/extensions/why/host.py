"""One scan at the machine: its processes, their open files, sockets and locks of files."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from locktop.collector.extensions.why.model import HostProcess, HostThread
from locktop.collector.linux import (
    file_locks,
    internet_sockets,
    open_files,
    procfs,
    syscalls,
    unix_sockets,
)
from locktop.collector.linux.command_line import program_words
from locktop.collector.linux.file_locks import FileLock
from locktop.collector.linux.internet_sockets import InternetSocket
from locktop.collector.linux.open_files import Descriptor, OpenFiles
from locktop.collector.linux.unix_sockets import UnixSocket

_ENDED = frozenset("ZX")
_SCRIPTS = (".py", ".pl", ".rb", ".sh", ".js")


class Host:
    """The machine by the kernel's files. Each part is read when it is first wanted.

    Attributes:
        has_files: Whether anything is known of descriptors. A core tells nothing.
    """

    has_files = True

    def __init__(self, processes: Mapping[int, HostProcess] | None = None) -> None:
        """``processes``: all that count, by pid; None: those that live now."""
        self.processes = processes if processes is not None else _processes()
        self._threads: dict[int, tuple[HostThread, ...]] = {}
        self._names: dict[int, str] = {}
        self.hidden: set[int] = set()  # processes whose calls were refused

    @functools.cached_property
    def files(self) -> OpenFiles:
        """The open files of all processes but locktop's own."""
        return open_files.read_all(pid for pid in self.processes if pid != os.getpid())

    @functools.cached_property
    def unix(self) -> Mapping[int, UnixSocket]:
        """The Unix sockets of all network namespaces of the machine, by inode."""
        sockets = unix_sockets.read_all()
        for name, pid in self._namespaces.items():
            if name != os.readlink("/proc/self/ns/net"):
                sockets |= unix_sockets.read_all_of(pid)
        return sockets

    @functools.cached_property
    def file_locks(self) -> Sequence[FileLock]:
        """The locks of files and the waits for them."""
        return file_locks.read_all()

    @functools.cached_property
    def internet(self) -> Sequence[InternetSocket]:
        """The TCP and UDP sockets of all network namespaces of the machine."""
        return [row for pid in self._namespaces.values() for row in internet_sockets.read_all(pid)]

    @functools.cached_property
    def descriptors_on_the_way(self) -> str:
        """Why descriptors may have further owners: some are in messages, which nobody has read.

        Returns:
            a doubt; "" if there are none (unix(7), SCM_RIGHTS).
        """
        for name, files in self.files.by_target.items():
            inode = name.removeprefix("socket:[").removesuffix("]")
            if not inode.isdigit() or int(inode) not in self.unix:
                continue
            fields = dict(open_files.information(files[0].pid, files[0].fd))
            if fields.get("scm_fds", "0") != "0":
                return f"{self.name(files[0].pid)} may still receive a descriptor of somebody"
        return ""

    @functools.cached_property
    def tracees(self) -> Mapping[int, Sequence[int]]:
        """The pids of the processes that each process traces, but for its children."""
        tracees: dict[int, list[int]] = {}
        for process in self.processes.values():
            with suppress(OSError, ValueError):
                tracer = procfs.tracer(process.pid)
                if tracer and tracer != process.parent:
                    tracees.setdefault(tracer, []).append(process.pid)
        return tracees

    @functools.cached_property
    def _namespaces(self) -> Mapping[str, int]:
        """A process of each network namespace."""
        members: dict[str, int] = {}
        for pid in self.processes:
            with suppress(OSError):
                members.setdefault(os.readlink(f"/proc/{pid}/ns/net"), pid)
        return members

    @functools.cached_property
    def children(self) -> Mapping[int, Sequence[int]]:
        """The pids of the living children of each process."""
        children: dict[int, list[int]] = {}
        for process in self.processes.values():
            if process.state not in _ENDED:
                children.setdefault(process.parent, []).append(process.pid)
        return children

    def threads(self, pid: int) -> tuple[HostThread, ...]:
        """Return the living threads of a process."""
        if pid not in self._threads:
            self._threads[pid] = tuple(self._read_threads(pid))
        return self._threads[pid]

    def _read_threads(self, pid: int) -> list[HostThread]:
        threads: list[HostThread] = []
        try:
            tids = procfs.tids(pid)
        except OSError:
            return threads
        for tid in tids:
            with suppress(OSError, ValueError):  # it has ended
                threads.append(self._read_thread(pid, tid))
        return [thread for thread in threads if thread.state not in _ENDED]

    def _read_thread(self, pid: int, tid: int) -> HostThread:
        stat = procfs.thread_stat(pid, tid)
        try:
            call, is_hidden = syscalls.parse(procfs.thread_syscall(pid, tid)), False
        except PermissionError:
            call, is_hidden = None, True
            self.hidden.add(pid)
        try:
            runs = procfs.thread_runs(pid, tid)
        except (OSError, ValueError):
            runs = -1
        return HostThread(tid, pid, stat.comm, stat.state, call, is_hidden, runs)

    def sleeps_in(self, thread: HostThread) -> str:
        """Return the kernel's function in which a thread sleeps; "0" if that is not known."""
        return procfs.thread_wchan(thread.pid, thread.tid)

    def child_with_id(self, pid: int, number: int) -> int:
        """Return the pid of a child by its id in the pid namespace of its parent; 0 for none.

        Args:
            pid: the parent.
            number: the id of the child as the parent has it.
        """
        with suppress(OSError, ValueError, KeyError):
            level = len(procfs.status(pid).namespace_pids) - 1
            for child in self.children.get(pid, ()):
                if procfs.status(child).namespace_pids[level] == number:
                    return child
        return 0

    def target(self, pid: int, fd: int) -> str:
        """Return what a descriptor of a process refers to; "" if it is not known."""
        return self.files.targets.get(pid, {}).get(fd, "")

    def openers(self, target: str) -> Sequence[Descriptor]:
        """Return all descriptors that refer to the same pipe, socket or file."""
        return self.files.by_target.get(target, ())

    def name(self, pid: int) -> str:
        """Return a process as "convert 4802", a script by its own name."""
        if pid not in self._names:
            self._names[pid] = f"{self._program(pid)} {pid}"
        return self._names[pid]

    def _program(self, pid: int) -> str:
        process = self.processes.get(pid)
        if process is None:
            return "process"
        try:
            words = program_words(procfs.cmdline(pid))
        except OSError:
            words = []
        name = os.path.basename(words[0]) if words else ""
        # A program may rename itself: only the script of an interpreter is a better name.
        return name if name.endswith(_SCRIPTS) else process.comm


def _processes() -> dict[int, HostProcess]:
    processes = {}
    for pid in procfs.pids():
        with suppress(OSError, ValueError):  # it has ended
            stat = procfs.stat(pid)
            processes[pid] = HostProcess(pid, stat.comm, stat.parent, stat.state)
    return processes
