"""Processes that a file has saved, in place of the kernel: core dumps.

Such a process gets a number that no process of the kernel has. The functions of ``procfs`` and
``process_memory`` answer for such a number from the file. So the code above them is the same for
both. A call of the kernel with such a number, or with one of its threads, fails: never does it
reach a process that runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

#: Above PID_MAX_LIMIT (include/linux/threads.h). Each saved process has room for all its threads.
_FIRST, _ROOM = 1 << 24, 1 << 23
_LAST = 1 << 31
_PATH = re.compile(r"/proc/(\d{8,10})/(.+)")


class SavedThread(Struct, frozen=True):
    """One thread at the moment of the core."""

    tid: int  # as the process itself has it, and the words of its locks
    name: str  # "": not known
    cpu_s: float
    #: The line of /proc/PID/task/TID/syscall: "running", or the call in which the thread sleeps.
    call: bytes
    registers: dict[int, int]  # by DWARF's numbers

    @property
    def is_asleep(self) -> bool:
        """Whether the thread slept in a system call."""
        return not self.call.startswith(b"running")


class SavedProcess(Protocol):
    """One process as a file has it."""

    path: str  # of the file
    threads: Sequence[SavedThread]  # in the order of the file
    exe: str  # the path of the program; "": not known

    def memory(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes. The result ends where neither file has more."""
        ...

    def proc_file(self, name: str, number: int) -> bytes:
        """Return a file below /proc/PID that all threads share, such as "maps".

        Args:
            name: of the file.
            number: that of the process here.

        Raises:
            FileNotFoundError: the core does not tell.
        """
        ...


_processes: dict[int, SavedProcess] = {}
_threads: dict[int, SavedThread] = {}  # by kernel_tid()


def register(process: SavedProcess) -> int:
    """Return a number for a process. unregister() gives it back."""
    number = next(n for n in range(_FIRST, _LAST, _ROOM) if n not in _processes)
    _processes[number] = process
    _threads.update((kernel_tid(number, thread.tid), thread) for thread in process.threads)
    return number


def unregister(number: int) -> None:
    """Forget a process."""
    process = _processes.pop(number, None)
    for thread in process.threads if process is not None else ():
        _threads.pop(kernel_tid(number, thread.tid), None)


def get(number: int) -> SavedProcess | None:
    """Return the process of a number; None for one of the kernel's."""
    return _processes.get(number) if _processes else None


def kernel_tid(number: int, tid: int) -> int:
    """Return the number of a thread, which no thread of the kernel has."""
    return number + tid


def thread_of(kernel_tid_: int) -> SavedThread | None:
    """Return a thread by its number; None for one of the kernel's."""
    return _threads.get(kernel_tid_) if _threads else None


def memory_of_thread(kernel_tid_: int, address: int, size: int) -> bytes:
    """Return up to ``size`` bytes of the memory of a thread's process."""
    process = get(kernel_tid_ - kernel_tid_ % _ROOM)
    return process.memory(address, size) if process is not None else b""


def proc_file(path: str) -> bytes | None:
    """Return a file of /proc about a saved process; None if the path is no such file.

    Raises:
        FileNotFoundError: the core does not tell.
    """
    match = _PATH.fullmatch(path) if _processes else None
    process = get(int(match[1])) if match is not None else None
    if match is None or process is None:
        return None
    number, name = int(match[1]), match[2]
    if not name.startswith("task/"):
        return process.proc_file(name, number)
    _, tid, file = name.split("/", 2)
    thread = thread_of(int(tid))
    if thread is None:
        raise FileNotFoundError(path)
    return _thread_file(thread, file, len(process.threads))


def stat_line(tid: int, name: str, cpu_s: float, state: str, threads: int) -> bytes:
    """Return a line of stat as proc_pid_stat(5) has it, as far as a core tells its fields."""
    ticks = round(cpu_s * 100)
    return f"{tid} ({name}) {state} {'0 ' * 10}{ticks} {'0 ' * 5}{threads} {'0 ' * 33}\n".encode()


def _thread_file(thread: SavedThread, file: str, threads: int) -> bytes:
    if file == "stat":
        state = "S" if thread.is_asleep else "R"
        return stat_line(thread.tid, thread.name, thread.cpu_s, state, threads)
    if file == "status":
        return f"NSpid:\t{thread.tid}\n".encode()
    if file == "syscall":
        return thread.call
    if file == "schedstat":
        return b"%d 0 1\n" % round(thread.cpu_s * 1e9)
    raise FileNotFoundError(file)
