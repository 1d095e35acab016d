"""Reads the files of /proc about a process; nothing is cached.

All functions raise OSError as the kernel gives it. FileNotFoundError and ProcessLookupError mean
that the process is gone. PermissionError means that the process belongs to another user.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.linux import saved_process
from locktop.collector.sanitize import clean

#: Flags of a thread (include/linux/sched.h), and the bit of a signal in a mask.
_PF_EXITING, _PF_SIGNALED = 0x4, 0x400
_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)

CLOCK_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_AUXILIARY = struct.Struct("=QQ")  # getauxval(3)
_AT_SECURE = 23


class TaskStat(NamedTuple):
    """The fields of /proc/PID/stat, or of a thread's stat, that locktop uses."""

    comm: str
    state: str  # one letter, see proc_pid_stat(5)
    parent: int  # pid
    cpu_s: float
    start_time: int  # clock ticks since boot
    threads: int  # of the process


class ProcessStatus(Struct, frozen=True):
    """The fields of /proc/PID/status that locktop uses."""

    process: int  # the pid of the process; the id that was read may be a thread's
    uid: int  # effective
    threads: int
    namespace_pids: tuple[int, ...]  # outermost namespace first, the process's own namespace last


class ThreadEnd(NamedTuple):
    """The end of a thread, while the kernel still shows it."""

    exits: bool  # perhaps alone
    is_killed: bool  # with its process: by a signal, or by an exit of the process


class Credentials(NamedTuple):
    """The user and group ids and the capabilities of a process, credentials(7)."""

    uids: tuple[int, ...]  # real, effective, saved, of the file system
    gids: tuple[int, ...]
    permitted: int  # capabilities, one bit each
    effective: int


def counts_as_we_do() -> bool:
    """Tell whether /proc is mounted and has the pids of our pid namespace.

    After unshare(2) without a new mount, /proc still belongs to the outer pid namespace.
    """
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def shares_namespace(pid: int, kind: str) -> bool | None:
    """Tell whether a process shares our namespace of a kind; None if the kernel forbids the read.

    ``kind``: "user" or "time" (namespaces(7)).
    """
    try:
        theirs = os.readlink(f"{shared_directory(pid)}/ns/{kind}")
        return theirs == os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return None


def hides_others() -> bool:
    """Tell whether /proc hides processes that we may not trace (mount option hidepid)."""
    for line in read("/proc/self/mounts").splitlines():
        _, directory, kind, options = line.split()[:4]
        if (directory, kind) == (b"/proc", b"proc") and b"hidepid=" in options:
            return True
    return False


def read(path: str) -> bytes:
    """Return a /proc file's bytes."""
    saved = saved_process.proc_file(path)
    if saved is not None:
        return saved
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, 1 << 16)
        while chunk := os.read(fd, 1 << 16):
            data += chunk
    finally:
        os.close(fd)
    return data


def parse_stat(data: bytes) -> TaskStat:
    """Parse a stat line. Raises ValueError.

    The second field, the name, may have blanks and parentheses.
    """
    end = data.rindex(b")")
    fields = data[end + 2 :].split(b" ", 20)
    if len(fields) < 20 or len(fields[0]) != 1:
        raise ValueError(f"{len(fields)} fields of a thread")
    cpu_ticks = int(fields[11]) + int(fields[12])
    name = clean(data[data.index(b"(") + 1 : end])
    return TaskStat(
        comm=name,
        state=fields[0].decode(),
        parent=int(fields[1]),
        cpu_s=cpu_ticks * CLOCK_TICK_S,
        start_time=int(fields[19]),
        threads=int(fields[17]),
    )


def age_s(start_time: int) -> float:
    """Return the age of a process, seconds. ``start_time``: TaskStat.start_time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_time * CLOCK_TICK_S


def stat(pid: int) -> TaskStat:
    """Return a process's stat."""
    return parse_stat(read(f"/proc/{pid}/stat"))


def thread_stat(pid: int, tid: int) -> TaskStat:
    """Return a thread's stat: its own name, state and processor time."""
    return parse_stat(read(f"/proc/{pid}/task/{tid}/stat"))


def thread_wchan(pid: int, tid: int) -> str:
    """Return the kernel's function in which a thread sleeps; "0" if the kernel names none."""
    return read(f"/proc/{pid}/task/{tid}/wchan").decode("ascii", "replace")


def thread_syscall(pid: int, tid: int) -> bytes:
    """Return the line on a thread's system call for syscalls.parse().

    The read needs the right to trace the process.
    """
    return read(f"/proc/{pid}/task/{tid}/syscall")


def thread_runs(pid: int, tid: int) -> int:
    """Return how often a thread was put on a CPU. Raises ValueError if the kernel does not count.

    While this number stays the same, the thread sleeps.
    """
    _, _, runs = thread_schedstat(pid, tid).split()
    return int(runs)


def thread_schedstat(pid: int, tid: int) -> bytes:
    """Return the scheduler's counters of a thread (Documentation/scheduler/sched-stats.rst)."""
    return read(f"/proc/{pid}/task/{tid}/schedstat")


def thread_switches(pid: int, tid: int) -> tuple[int, int]:
    """Return a thread's voluntary switches (to sleep) and involuntary switches (preempted).

    Raises: KeyError if the kernel does not count.
    """
    counts = {b"voluntary_ctxt_switches": -1, b"nonvoluntary_ctxt_switches": -1}
    for line in read(f"/proc/{pid}/task/{tid}/status").splitlines():
        name, _, rest = line.partition(b":")
        if name in counts:
            counts[name] = int(rest)
    if min(counts.values()) < 0:
        raise KeyError("the kernel counts no switches")
    voluntary, involuntary = counts.values()
    return voluntary, involuntary


def thread_end(pid: int, tid: int) -> ThreadEnd:
    """Return whether a thread is at its end. Raises OSError if it has ended."""
    data = read(f"/proc/{pid}/task/{tid}/stat")
    flags = int(data[data.rindex(b")") + 2 :].split(b" ", 7)[6])
    pending = 0
    for line in read(f"/proc/{pid}/task/{tid}/status").splitlines():
        if line.startswith(b"SigPnd:"):
            pending = int(line.split()[1], 16)
    is_killed = bool(flags & _PF_SIGNALED or pending & _SIGKILL_BIT)
    return ThreadEnd(exits=bool(flags & _PF_EXITING), is_killed=is_killed)


def thread_migrations(pid: int, tid: int) -> int:
    """Return how often a thread moved to another CPU. Raises KeyError without such a count."""
    # The first line has the thread's name, which is too short to look like the wanted line.
    for line in read(f"/proc/{pid}/task/{tid}/sched").splitlines():
        if line.startswith(b"se.nr_migrations"):
            return int(line.partition(b":")[2])
    raise KeyError("the kernel counts no migrations")


def counts_disk_waits() -> tuple[bool, bool]:
    """Return whether the kernel counts the time of disk waits, and whether for every thread.

    If delay accounting was switched on after the boot, older threads have no counts.
    """
    try:
        setting = read("/proc/sys/kernel/task_delayacct").strip()
    except OSError:
        setting = b""  # none before Linux 5.14: only the counts show
    if setting == b"0":
        return False, False
    try:
        return True, setting == b"1" and b"delayacct" in read("/proc/cmdline").split()
    except OSError:
        return True, False


def ticks_always() -> bool:
    """Tell whether the kernel counts a running thread at each clock tick on all CPUs.

    On CPUs with nohz_full, the kernel counts only once a second.
    """
    try:
        return read("/sys/devices/system/cpu/nohz_full").strip() in (b"", b"(null)")
    except OSError:
        return True  # a kernel without that


def status(pid: int) -> ProcessStatus:
    """Return a process's status."""
    fields: dict[bytes, list[bytes]] = {}
    for line in read(f"/proc/{pid}/status").splitlines():
        name, _, rest = line.partition(b":")
        fields[name] = rest.split()
    namespace_pids = tuple(int(value) for value in fields.get(b"NSpid", [b"%d" % pid]))
    threads = int(fields[b"Threads"][0]) if b"Threads" in fields else 0
    return ProcessStatus(
        process=int(fields[b"Tgid"][0]),
        uid=int(fields[b"Uid"][1]),
        threads=threads,
        namespace_pids=namespace_pids,
    )


def credentials(pid: int | str) -> Credentials:
    """Return the credentials of a process. ``pid``: "self" is this process."""
    lines = (line.partition(b":") for line in read(f"/proc/{pid}/status").splitlines())
    fields = {name: rest.split() for name, _, rest in lines}
    return Credentials(
        uids=tuple(map(int, fields[b"Uid"])),
        gids=tuple(map(int, fields[b"Gid"])),
        permitted=int(fields[b"CapPrm"][0], 16),
        effective=int(fields[b"CapEff"][0], 16),
    )


def caught_signals(pid: int) -> frozenset[int]:
    """Return the numbers of the signals for which a process has a handler."""
    mask = int(_status_field(pid, b"SigCgt"), 16)
    return frozenset(number for number in range(1, 65) if mask >> (number - 1) & 1)


def tracer(pid: int) -> int:
    """Return the id of the process that traces the first thread; 0: none."""
    return int(_status_field(pid, b"TracerPid"))


def has_timers(pid: int) -> bool:
    """Return whether a process has timers of timer_create(2)."""
    return bool(read(f"/proc/{pid}/timers"))


def _status_field(pid: int, name: bytes) -> bytes:
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(name + b":"):
            return line.split()[1]
    raise OSError(f"no {name.decode()} in the status of {pid}")


def open_files(pid: int) -> list[str]:
    """Return what a process has open: paths, or names such as ``anon_inode:[io_uring]``.

    A file that is closed meanwhile is left out.
    """
    targets = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return targets


def own_tid(pid: int, tid: int) -> int:
    """Return a thread's id in its own pid namespace; ``tid`` if the kernel does not say."""
    for line in read(f"/proc/{pid}/task/{tid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return tid


def tids(pid: int) -> list[int]:
    """Return the ids of a process's threads."""
    saved = saved_process.get(pid)
    if saved is not None:
        return [saved_process.kernel_tid(pid, thread.tid) for thread in saved.threads]
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def living(pid: int) -> int:
    """Return the id of a living thread of a process: the first thread if it has not ended.

    The first thread may end by pthread_exit() before the others. No exception is raised: the next
    read shows whether the process exists.
    """
    ended = OSError, ValueError
    with contextlib.suppress(*ended):
        for tid in tids(pid) if stat(pid).state in "ZX" else ():
            with contextlib.suppress(*ended):
                if thread_stat(pid, tid).state not in "ZX":
                    return tid
    return pid


def shared_directory(pid: int) -> str:
    """Return the directory of /proc with the memory and files that all threads share.

    No exception is raised.
    """
    tid = living(pid)
    return f"/proc/{pid}" if tid == pid else f"/proc/{pid}/task/{tid}"


def exe(pid: int) -> str:
    """Return the path of the program that a process executes, sanitized."""
    saved = saved_process.get(pid)
    if saved is not None:
        return clean(saved.exe)
    return clean(os.readlink(f"{shared_directory(pid)}/exe"))


def maps(pid: int) -> bytes:
    """Return a process's memory map; b"" when it has ended."""
    return read(f"{shared_directory(pid)}/maps")


def resident_bytes(pid: int) -> int:
    """Return the size of a process's resident set, bytes."""
    return int(read(f"{shared_directory(pid)}/statm").split()[1]) * _PAGE


def cmdline(pid: int) -> tuple[str, ...]:
    """Return a process's arguments, sanitized."""
    data = read(f"{shared_directory(pid)}/cmdline")
    return tuple(clean(part) for part in data.rstrip(b"\0").split(b"\0")) if data else ()


def environment(pid: int, name: str) -> str | None:
    """Return a variable of a process's initial environment; None if it is not there."""
    wanted = os.fsencode(name) + b"="
    for entry in read(f"{shared_directory(pid)}/environ").split(b"\0"):
        if entry.startswith(wanted):
            return os.fsdecode(entry[len(wanted) :])
    return None


def gained_privilege(pid: int) -> bool:
    """Tell whether a process gained rights at its exec (setuid, capabilities).

    The kernel reports that to the loader, which then ignores LD_PRELOAD.
    """
    auxv = read(f"{shared_directory(pid)}/auxv")
    whole = len(auxv) - len(auxv) % _AUXILIARY.size
    return any(key == _AT_SECURE and value for key, value in _AUXILIARY.iter_unpack(auxv[:whole]))


def pids() -> list[int]:
    """Return the ids of all processes that /proc shows."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
