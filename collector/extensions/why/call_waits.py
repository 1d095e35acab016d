"""Reads what a thread waits for in a system call, and which threads could end the wait."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from locktop.collector.extensions.why.file_ends import OTHER_END, SERVER, FileEnd, FileEnds
from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.model import ANY_THREAD, Awaited, HostThread
from locktop.collector.linux import (
    file_locks,
    futex,
    open_files,
    process_memory,
    procfs,
    syscalls,
    system_v,
)
from locktop.collector.linux.file_locks import FileLock
from locktop.collector.sanitize import clean

_READS = frozenset(
    {
        "read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg",
        "accept", "accept4",
    }
)  # fmt: skip
_WRITES = frozenset(
    {
        "write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "sendmmsg",
        "sendfile", "vmsplice",
    }
)  # fmt: skip
#: From one descriptor to another: the place of the second one.
_COPIES = {"splice": 2, "tee": 1}
_QUEUE_SENDS, _QUEUE_RECEIVES = "mq_timedsend", "mq_timedreceive"
#: The fifth argument is a time limit, or NULL.
_TIMED = frozenset({_QUEUE_SENDS, _QUEUE_RECEIVES, "recvmmsg"})
_TAKES_CONNECTIONS = frozenset({"accept", "accept4"})
_SLEEPS = frozenset({"nanosleep", "clock_nanosleep"})
_OPENS = frozenset({"open", "openat"})
_FOR_OTHER_END = "wait_for_partner"  # the kernel's function for FIFOs (fs/pipe.c)
_FOR_SIGNALS = frozenset({"pause", "rt_sigsuspend", "rt_sigtimedwait"})
_STARTS = frozenset({"vfork", "clone", "clone3"})
_CLONE_VFORK = 0x4000  # linux/sched.h
_SYSTEM_V = frozenset({"semop", "semtimedop", "msgrcv", "msgsnd"})
_POLLS = frozenset({"poll", "ppoll"})
_SELECTS = frozenset({"select", "pselect6"})
_EPOLLS = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
_POLLED = struct.Struct("=ihh")  # struct pollfd
_MAX_POLLED = 1024
_MAX_SHARED = 16  # descriptors of one poll whose other users are looked for
_SEMAPHORE_CHANGE = struct.Struct("=Hhh")  # struct sembuf
_AF_UNIX = struct.pack("=H", socket.AF_UNIX)
_P_ALL, _P_PID, _P_PGID, _P_PIDFD = range(4)  # waitid(2)
_LOCK_WAITS = {7: "POSIX", 38: "OFDLCK"}  # fcntl(2): F_SETLKW, F_OFD_SETLKW
_STOPPED = frozenset("Tt")
TIME_LIMIT = "its time limit"
#: Signals whose handlers run in the course of a program: a timer's, a child's, one program's call
#: to another. Handlers of the others are for its end, or for a fault.
_WAKING_SIGNALS = {10: "SIGUSR1", 12: "SIGUSR2", 14: "SIGALRM", 26: "SIGVTALRM", 29: "SIGIO"}
_SIGCHLD = 17


class CallWaits:
    """The waits of threads in system calls, in one scan at the machine."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ends = FileEnds(host)
        self._tids_of: dict[tuple[int, ...], frozenset[int]] = {}
        self._timed: dict[int, bool] = {}  # whether it has timers, by pid
        self._handled: dict[int, frozenset[int]] = {}  # signals with a handler, by pid

    def awaited(self, thread: HostThread) -> Awaited | None:
        """Return what a thread waits for; None if it runs."""
        if thread.state in _STOPPED:
            return self._stop_wait(thread)
        if thread.is_hidden:
            return Awaited("does what the kernel hides from this user", other_end="not known")
        if thread.call is None:
            return None
        name = syscalls.name(thread.call.number)
        arguments = thread.call.arguments or (0,) * 6
        for awaited_in in (self._on_descriptor, self._on_several, self._on_another):
            if (awaited := awaited_in(thread, name, arguments)) is not None:
                return awaited
        return self._other(thread, name)

    def _on_descriptor(
        self, thread: HostThread, name: str, arguments: Sequence[int]
    ) -> Awaited | None:
        fd = _fd(arguments[0])
        if name in _TIMED and arguments[4]:
            what = self._ends.end(thread.pid, fd).object
            return Awaited(f"waits for {what}", other_end=TIME_LIMIT)
        if name in (_QUEUE_SENDS, _QUEUE_RECEIVES):
            writes = name == _QUEUE_SENDS
            end = self._ends.queue(thread.pid, fd, writes)
            verb = "sends to the full" if writes else "receives from"
            return self._waiting(thread, f"{verb} {end.object}", end)
        if name in _COPIES:
            second = _fd(arguments[_COPIES[name]])
            ends = (self._ends.end(thread.pid, fd), self._ends.end(thread.pid, second, True))
            end = self._ends.any_of(ends)
            return self._waiting(thread, f"copies between {end.object}", end)
        if name in _READS:
            return self._on_end(thread, _verb(name), fd)
        if name in _WRITES:
            return self._on_end(thread, "writes to", fd, writes=True)
        if name == "connect":
            return self._on_connect(thread, fd, arguments)
        if name == "flock":
            return self._on_file_lock(thread, fd, "FLOCK")
        if name == "fcntl" and _fd(arguments[1]) in _LOCK_WAITS:
            return self._on_file_lock(thread, fd, _LOCK_WAITS[_fd(arguments[1])])
        return None

    def _on_several(
        self, thread: HostThread, name: str, arguments: Sequence[int]
    ) -> Awaited | None:
        first, second, third, fourth, fifth = arguments[:5]
        if name in _POLLS:
            is_timed = _signed_word(third) >= 0 if name == "poll" else third != 0
            return self._on_any(thread, self._poll_fds(thread.pid, first, second), is_timed)
        if name in _SELECTS:
            fds = self._select_fds(thread.pid, _fd(first), (second, third, fourth))
            return self._on_any(thread, fds, fifth != 0)
        if name in _EPOLLS:
            is_timed = fourth != 0 if name == "epoll_pwait2" else _signed_word(fourth) >= 0
            return self._on_any(thread, (_fd(first),), is_timed)
        return None

    def _on_another(
        self, thread: HostThread, name: str, arguments: Sequence[int]
    ) -> Awaited | None:
        if name in ("wait4", "waitid"):
            return self._on_children(thread, name, arguments)
        if name in _STARTS and self._shares_until_start(thread.pid, name, arguments[0]):
            return self._on_start(thread)
        assert thread.call is not None
        return self._on_futex(thread) if syscalls.is_futex(thread.call.number) else None

    def _other(self, thread: HostThread, name: str) -> Awaited:
        if name in _SLEEPS:
            return Awaited("sleeps", other_end=TIME_LIMIT)
        if name in _OPENS and self._host.sleeps_in(thread) == _FOR_OTHER_END:
            return Awaited("opens a FIFO", other_end="a process that opens its other end")
        if name in _FOR_SIGNALS:
            return Awaited("waits for a signal", other_end="a signal")
        if name in _SYSTEM_V:
            return self._on_system_v(thread, name)
        if thread.state == "D":
            function = self._host.sleeps_in(thread)
            inside = f" ({function})" if function.strip("0") else ""
            does = f"is in {name or 'the kernel'}, for a device{inside}"
            return Awaited(does, other_end="the device")
        return Awaited(f"is in {name or 'the kernel'}", other_end="the kernel")

    def _on_system_v(self, thread: HostThread, name: str) -> Awaited:
        """Any process may end the wait. The last one that did something is only a hint."""
        assert thread.call is not None
        number, second = thread.call.arguments[:2]
        if name in ("semop", "semtimedop"):
            data = process_memory.read(thread.pid, second, _SEMAPHORE_CHANGE.size)
            which = _SEMAPHORE_CHANGE.unpack(data)[0] if len(data) == _SEMAPHORE_CHANGE.size else 0
            last = system_v.last_changer(thread.pid, number, which)
            what, did = f"System V semaphore {which} of set {number}", "changed it"
        elif name == "msgrcv":
            last = system_v.last_sender(thread.pid, number)
            what, did = f"System V queue {number}", "sent to it"
        else:
            last = system_v.last_receiver(thread.pid, number)
            what, did = f"the full System V queue {number}", "received from it"
        is_other = last not in (0, thread.pid)
        hint = f", {self._host.name(last)} last {did}" if is_other else ""
        return Awaited(f"waits for {what}{hint}", other_end="any process")

    # ---- descriptors ----

    def _on_end(self, thread: HostThread, verb: str, fd: int, writes: bool = False) -> Awaited:
        """The wait for one descriptor."""
        end = self._ends.end(thread.pid, fd, writes)
        what = end.object
        if writes and end.pids:
            is_own = what.startswith("its ")
            what = what.replace("its ", "its full ", 1) if is_own else f"the full {what}"
        awaited = self._waiting(thread, f"{verb} {what}", end)
        if end.role not in (OTHER_END, SERVER):
            return awaited
        awaited = self._add_sharers(awaited, thread, fd)
        option = socket.SO_SNDTIMEO if writes else socket.SO_RCVTIMEO
        return replace(awaited, socket_limit=(fd, option))

    def _on_connect(self, thread: HostThread, fd: int, arguments: Sequence[int]) -> Awaited:
        """A connection to a Unix socket whose queue is full has no peer yet."""
        address = process_memory.read(thread.pid, arguments[1], min(arguments[2] & 0xFFFF, 128))
        name = address[2:]
        path = "@" + clean(name[1:]) if name[:1] == b"\0" else clean(name.split(b"\0")[0])
        if address[:2] == _AF_UNIX and path:
            for listener in self._host.unix.values():
                if listener.listens and listener.name == path:
                    end = self._ends.listener(listener)
                    return replace(
                        self._waiting(
                            thread, f"connects to {end.object}, whose queue is full", end
                        ),
                        socket_limit=(fd, socket.SO_SNDTIMEO),
                    )
        return self._on_end(thread, "connects to", fd)

    def _on_any(self, thread: HostThread, fds: Sequence[int], is_timed: bool) -> Awaited:
        end = self._ends.any_of(self._ends.end(thread.pid, fd) for fd in fds)
        if not fds:
            end = replace(end, object="a signal", other_end="a signal")
        if is_timed:
            other = " or ".join(part for part in (end.other_end, TIME_LIMIT) if part)
            end = replace(end, other_end=other)
        awaited = self._waiting(thread, f"waits for {end.object}", end)
        return self._add_sharers(awaited, thread, *fds[:_MAX_SHARED])

    def _add_sharers(self, awaited: Awaited, thread: HostThread, *fds: int) -> Awaited:
        """Add who may shut down a socket, or change an epoll, at which a thread waits."""
        if not awaited.providers or awaited.other_end:
            return awaited
        targets = [self._host.target(thread.pid, fd) for fd in fds]
        sockets = [target for target in targets if target.startswith("socket:")]
        if not sockets and not any(target.endswith("[eventpoll]") for target in targets):
            return awaited
        users = (file.pid for target in sockets for file in self._host.openers(target))
        pids = tuple(sorted({*users, thread.pid}))
        return replace(awaited, sharers=pids, sharer_tids=self._tids(pids))

    def _waiting(self, thread: HostThread, does: str, end: FileEnd) -> Awaited:
        # A handler of SIGCHLD may end the wait at the end of any child.
        heard = self._host.children.get(thread.pid, ()) if self._hears_children(thread.pid) else ()
        providers = self._tids((*end.pids, *heard))
        return Awaited(
            does=does,
            role=end.role,
            providers=providers,
            pids=end.pids,
            other_end=end.other_end or ("" if providers else "the end of a process, just now,"),
            doubt=end.doubt or self._handler(thread),
        )

    def _tids(self, pids: tuple[int, ...]) -> frozenset[int]:
        """Return the threads of processes: each of them has the descriptors of its process.

        Waits for the same processes share one set, because thousands of threads may wait.
        """
        if pids not in self._tids_of:
            self._tids_of[pids] = frozenset(
                thread.tid for pid in pids for thread in self._host.threads(pid)
            )
        return self._tids_of[pids]

    def _poll_fds(self, pid: int, address: int, count: int) -> list[int]:
        raw = process_memory.read(pid, address, min(count, _MAX_POLLED) * _POLLED.size)
        whole = len(raw) - len(raw) % _POLLED.size
        return [fd for fd, _, _ in _POLLED.iter_unpack(raw[:whole]) if fd >= 0]

    def _select_fds(self, pid: int, count: int, sets: Sequence[int]) -> list[int]:
        fds: set[int] = set()
        size = (min(count, _MAX_POLLED) + 63) // 64 * 8
        for address in sets:
            bits = int.from_bytes(
                process_memory.read(pid, address, size) if address else b"", "little"
            )
            fds.update(fd for fd in range(size * 8) if bits >> fd & 1)
        return sorted(fds)

    # ---- processes ----

    def _on_children(self, thread: HostThread, name: str, arguments: Sequence[int]) -> Awaited:
        if name == "waitid" and arguments[0] == _P_PIDFD:
            return self._on_end(thread, "waits for", _fd(arguments[1]))
        wanted = 0
        if name == "wait4":
            wanted = max(0, _signed_word(arguments[0]))
        elif arguments[0] == _P_PID:
            wanted = arguments[1]
        if wanted:
            child = self._host.child_with_id(thread.pid, wanted)
            pids: Sequence[int] = (child,) if child else ()
        else:
            tracees = self._host.tracees.get(thread.tid, ())
            pids = (*self._host.children.get(thread.pid, ()), *tracees)
        return self._processes(thread, "waits for the end of", "child", pids)

    def _processes(self, thread: HostThread, verb: str, role: str, pids: Sequence[int]) -> Awaited:
        names = [self._host.name(pid) for pid in pids]
        text = " or ".join(names[:2]) + (f" or {len(names) - 2} others" if names[2:] else "")
        end = FileEnd("", role, tuple(pids), "" if pids else "a child that is not known")
        return self._waiting(thread, f"{verb} {text or 'a child'}", end)

    @staticmethod
    def _shares_until_start(pid: int, name: str, first: int) -> bool:
        """Return whether a caller waits until its child has called execve() or has ended."""
        if name == "clone3":
            first = int.from_bytes(process_memory.read(pid, first, 8), "little")
        return name == "vfork" or bool(first & _CLONE_VFORK)

    def _on_start(self, thread: HostThread) -> Awaited:
        """vfork() or posix_spawn(): until its start a child has the memory of its parent."""
        line = self._command_line(thread.pid)
        children = self._host.children.get(thread.pid, ())
        new = [child for child in children if self._command_line(child) == line]
        return self._processes(thread, "waits for the start of", "child", new)

    @staticmethod
    def _command_line(pid: int) -> Sequence[str] | None:
        try:
            return procfs.cmdline(pid)
        except OSError:
            return None

    def _stop_wait(self, thread: HostThread) -> Awaited:
        try:
            tracer = procfs.tracer(thread.pid)
        except (OSError, ValueError):
            tracer = 0
        if tracer:
            end = FileEnd("", "tracer", (tracer,), "")
            return self._waiting(thread, f"is stopped by its tracer {self._host.name(tracer)}", end)
        return Awaited(
            f"is stopped by a signal (`kill -CONT {thread.pid}` lets it go on)",
            other_end="a signal",
        )

    # ---- locks ----

    def _on_futex(self, thread: HostThread) -> Awaited:
        """A word that is private to a process is changed by its threads alone."""
        assert thread.call is not None
        wait = futex.parse_wait(thread.pid, thread.call)
        if wait is None or not wait.private:
            return Awaited("waits for a lock in shared memory", other_end="another process")
        return Awaited(
            does="waits for another thread of its process",
            role=ANY_THREAD,
            providers=self._tids((thread.pid,)),
            pids=(thread.pid,),
            other_end=TIME_LIMIT if wait.timed else "",
            doubt=self._handler(thread),
        )

    def _on_file_lock(self, thread: HostThread, fd: int, type_: str) -> Awaited:
        target = self._host.target(thread.pid, fd)
        holders = tuple(self._lock_holders(thread, target, type_))
        other = "" if holders else "a process that is not known"
        end = FileEnd(target, "holder", holders, other)
        return self._waiting(thread, f"waits for the lock of {target or 'a file'}", end)

    def _lock_holders(self, thread: HostThread, target: str, type_: str) -> Iterator[int]:
        """Yield the processes that have the lock for which the thread waits."""
        waits = [
            lock
            for lock in self._host.file_locks
            if lock.waits and lock.type == type_ and lock.pid in (thread.pid, -1)
        ]
        numbers = {lock.number for lock in waits}
        held = [lock for lock in self._host.file_locks if not lock.waits and lock.number in numbers]
        for lock in held:
            if lock.type == "POSIX":
                yield lock.pid
            else:
                yield from self._description_sharers(target, lock)

    def _description_sharers(self, target: str, lock: FileLock) -> Iterator[int]:
        """Yield the processes with the open file that has the lock: children inherit it."""
        sharers = dict.fromkeys(
            file.pid
            for file in self._host.openers(target)
            if any(
                name == "lock" and _is_same(file_locks.parse(rest), lock)
                for name, rest in open_files.information(file.pid, file.fd)
            )
        )
        yield from sharers or ([lock.pid] if lock.pid > 0 else [])

    # ---- doubts ----

    def _hears_children(self, pid: int) -> bool:
        return _SIGCHLD in self._handled_signals(pid)

    def _handled_signals(self, pid: int) -> frozenset[int]:
        if pid not in self._handled:
            try:
                self._handled[pid] = procfs.caught_signals(pid)
            except (OSError, ValueError):
                self._handled[pid] = frozenset()
        return self._handled[pid]

    def _handler(self, thread: HostThread) -> str:
        """Return the doubt that a handler of a signal may end the wait; "" without one."""
        handled = self._handled_signals(thread.pid)
        names = [name for number, name in _WAKING_SIGNALS.items() if number in handled]
        if not names:
            return self._timers(thread.pid)
        return f"{self._host.name(thread.pid)} has a handler of {', '.join(names)}, which may act"

    def _timers(self, pid: int) -> str:
        if pid not in self._timed:
            try:
                self._timed[pid] = procfs.has_timers(pid)
            except OSError:
                self._timed[pid] = False
        return f"{self._host.name(pid)} has a timer, whose signal may act" * self._timed[pid]


def _verb(name: str) -> str:
    if name in _TAKES_CONNECTIONS:
        return "waits for a connection at"
    return "receives from" if name.startswith("recv") else "reads from"


def _is_same(mine: FileLock | None, lock: FileLock) -> bool:
    return mine is not None and not mine.waits and (mine.type, mine.file) == (lock.type, lock.file)


def _fd(value: int) -> int:
    return value & 0xFFFFFFFF


def _signed_word(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
