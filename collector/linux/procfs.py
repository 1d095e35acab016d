"""What /proc says about a process: small readers, nothing cached.

Everything raises OSError as the kernel gives it: FileNotFoundError or ProcessLookupError when the
process is gone, PermissionError when it is somebody else's.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from dataclasses import dataclass
from typing import NamedTuple

from locktop.collector.sanitize import clean

CLOCK_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_AUXILIARY = struct.Struct("=QQ")  # getauxval(3)
_AT_SECURE = 23


class TaskStat(NamedTuple):
    """The fields of /proc/PID/stat (or of a thread's) that matter here."""

    comm: str
    state: str  # one letter, see proc_pid_stat(5)
    parent: int  # pid
    cpu_s: float
    start_time: int  # clock ticks since boot
    threads: int  # of the process


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The fields of /proc/PID/status that matter here."""

    process: int  # the pid that this (perhaps a thread's) id belongs to
    uid: int  # effective
    threads: int
    namespace_pids: tuple[int, ...]  # outermost first; the last is the process's own view


class Credentials(NamedTuple):
    """In whose name a process acts, credentials(7): its ids as /proc/PID/status has them."""

    uids: tuple[int, ...]  # real, effective, saved, of the file system
    gids: tuple[int, ...]
    permitted: int  # capabilities, one bit each
    effective: int


def counts_as_we_do() -> bool:
    """Tell whether /proc is there, and has the processes under the numbers that they have for us:
    after a bare unshare(2) it is still that of the pid namespace outside."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def in_our_namespace(pid: int, kind: str) -> bool | None:
    """Tell whether a process is in our namespace of a kind, "user" or "time" (namespaces(7)); None
    where that may not be seen."""
    try:
        theirs = os.readlink(f"{shared(pid)}/ns/{kind}")
        return theirs == os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return None


def hides_others() -> bool:
    """Tell whether /proc is mounted so that it hides what one may not trace (hidepid)."""
    for line in read("/proc/self/mounts").splitlines():
        _, directory, kind, options = line.split()[:4]
        if (directory, kind) == (b"/proc", b"proc") and b"hidepid=" in options:
            return True
    return False


def read(path: str) -> bytes:
    """Return a /proc file's bytes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, 1 << 16)
        while chunk := os.read(fd, 1 << 16):
            data += chunk
    finally:
        os.close(fd)
    return data


def parse_stat(data: bytes) -> TaskStat:
    """Parse a stat line; the second field, a name, may itself hold blanks and parentheses. Raises
    ValueError."""
    end = data.rindex(b")")
    fields = data[end + 2 :].split(b" ", 20)
    if len(fields) < 20 or len(fields[0]) != 1:
        raise ValueError(f"{len(fields)} fields of a thread")
    cpu_ticks = int(fields[11]) + int(fields[12])
    name = clean(data[data.index(b"(") + 1 : end])
    return TaskStat(
        name, fields[0].decode(), int(fields[1]), cpu_ticks * CLOCK_TICK_S, int(fields[19]),
        int(fields[17]),
    )  # fmt: skip


def age_s(start_time: int) -> float:
    """Return how long ago a process began; ``start_time`` is TaskStat.start_time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_time * CLOCK_TICK_S


def stat(pid: int) -> TaskStat:
    """Return a process's stat."""
    return parse_stat(read(f"/proc/{pid}/stat"))


def thread_stat(pid: int, tid: int) -> TaskStat:
    """Return a thread's stat: its own name, state and processor time."""
    return parse_stat(read(f"/proc/{pid}/task/{tid}/stat"))


def thread_wchan(pid: int, tid: int) -> str:
    """Return the kernel's function in which a thread sleeps; "0" where none is told."""
    return read(f"/proc/{pid}/task/{tid}/wchan").decode("ascii", "replace")


def thread_syscall(pid: int, tid: int) -> bytes:
    """Return in which system call a thread is, see syscalls.parse(). To see it takes the right to
    trace the process."""
    return read(f"/proc/{pid}/task/{tid}/syscall")


def thread_runs(pid: int, tid: int) -> int:
    """Return how often a thread was put on a CPU: it slept all the time while that stays the
    same. Raises ValueError where the kernel does not tell."""
    _, _, runs = thread_schedstat(pid, tid).split()
    return int(runs)


def thread_schedstat(pid: int, tid: int) -> bytes:
    """Return what the scheduler counts of a thread (Documentation/scheduler/sched-stats.rst)."""
    return read(f"/proc/{pid}/task/{tid}/schedstat")


def thread_switches(pid: int, tid: int) -> tuple[int, int]:
    """Return how often a thread left its CPU to sleep, and how often it was put off one. Raises
    KeyError where the kernel does not tell."""
    counts = {b"voluntary_ctxt_switches": -1, b"nonvoluntary_ctxt_switches": -1}
    for line in read(f"/proc/{pid}/task/{tid}/status").splitlines():
        name, _, rest = line.partition(b":")
        if name in counts:
            counts[name] = int(rest)
    if min(counts.values()) < 0:
        raise KeyError("no switches are told")
    voluntary, involuntary = counts.values()
    return voluntary, involuntary


def thread_migrations(pid: int, tid: int) -> int:
    """Return how often a thread moved to another CPU. Raises KeyError where the kernel does not
    tell."""
    # The first line has the thread's name, which is too short to look like the one wanted.
    for line in read(f"/proc/{pid}/task/{tid}/sched").splitlines():
        if line.startswith(b"se.nr_migrations"):
            return int(line.partition(b":")[2])
    raise KeyError("no migrations are told")


def counts_disk_waits() -> tuple[bool, bool]:
    """Return whether the kernel counts the time that threads wait for disks (delay accounting), and
    whether it has done so for every thread. Where it began later, older threads are left out."""
    try:
        setting = read("/proc/sys/kernel/task_delayacct").strip()
    except OSError:
        setting = b""  # before Linux 5.14 none: only what it counts tells
    if setting == b"0":
        return False, False
    try:
        return True, setting == b"1" and b"delayacct" in read("/proc/cmdline").split()
    except OSError:
        return True, False


def ticks_always() -> bool:
    """Tell whether a thread that runs is counted at each tick of the clock: on CPUs that are set
    apart from it (nohz_full) only once a second."""
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
    return ProcessStatus(int(fields[b"Tgid"][0]), int(fields[b"Uid"][1]), threads, namespace_pids)


def credentials(pid: int | str) -> Credentials:
    """Return in whose name a process acts, "self" for this one."""
    lines = (line.partition(b":") for line in read(f"/proc/{pid}/status").splitlines())
    fields = {name: rest.split() for name, _, rest in lines}
    return Credentials(
        tuple(map(int, fields[b"Uid"])),
        tuple(map(int, fields[b"Gid"])),
        int(fields[b"CapPrm"][0], 16),
        int(fields[b"CapEff"][0], 16),
    )


def own_tid(pid: int, tid: int) -> int:
    """Return a thread's id as its own pid namespace counts; ``tid`` where the kernel is silent."""
    for line in read(f"/proc/{pid}/task/{tid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return tid


def tids(pid: int) -> list[int]:
    """Return the ids of a process's threads."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def living(pid: int) -> int:
    """Return the id of a process's first thread, or of another one that lives where that has ended
    by pthread_exit. Nothing is raised: what is read next tells whether the process is there."""
    ended = OSError, ValueError
    with contextlib.suppress(*ended):
        for tid in tids(pid) if stat(pid).state in "ZX" else ():
            with contextlib.suppress(*ended):
                if thread_stat(pid, tid).state not in "ZX":
                    return tid
    return pid


def shared(pid: int) -> str:
    """Return the directory of /proc that has what the threads of a process share, as its memory and
    its files. Nothing is raised."""
    tid = living(pid)
    return f"/proc/{pid}" if tid == pid else f"/proc/{pid}/task/{tid}"


def exe(pid: int) -> str:
    """Return the path of the program that a process executes, made harmless."""
    return clean(os.readlink(f"{shared(pid)}/exe"))


def maps(pid: int) -> bytes:
    """Return a process's memory map; b"" when it has ended."""
    return read(f"{shared(pid)}/maps")


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has (its resident set)."""
    return int(read(f"{shared(pid)}/statm").split()[1]) * _PAGE


def cmdline(pid: int) -> tuple[str, ...]:
    """Return a process's arguments, made harmless."""
    data = read(f"{shared(pid)}/cmdline")
    return tuple(clean(part) for part in data.rstrip(b"\0").split(b"\0")) if data else ()


def environment(pid: int, name: str) -> str | None:
    """Return a variable of the environment that a process was started with."""
    wanted = os.fsencode(name) + b"="
    for entry in read(f"{shared(pid)}/environ").split(b"\0"):
        if entry.startswith(wanted):
            return os.fsdecode(entry[len(wanted) :])
    return None


def gained_privilege(pid: int) -> bool:
    """Tell whether executing its program gave a process more rights (setuid, capabilities): the
    kernel tells the loader, which then ignores LD_PRELOAD."""
    auxv = read(f"{shared(pid)}/auxv")
    whole = len(auxv) - len(auxv) % _AUXILIARY.size
    return any(key == _AT_SECURE and value for key, value in _AUXILIARY.iter_unpack(auxv[:whole]))


def pids() -> list[int]:
    """Return the ids of all processes that /proc shows."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
