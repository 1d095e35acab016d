"""Finds who could make a descriptor ready: the other end of a pipe, the users of an eventfd."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.model import UNTOLD
from locktop.collector.linux import mounts, open_files, procfs
from locktop.collector.linux.internet_sockets import InternetSocket
from locktop.collector.linux.mounts import Mount
from locktop.collector.linux.unix_sockets import UnixSocket

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_PIPE = "pipe:["
_TERMINALS = ("/dev/tty", "/dev/pts/", "/dev/console")
_EPOLL, _EVENTFD, _TIMERFD, _PIDFD = (
    f"anon_inode:[{name}]" for name in ("eventpoll", "eventfd", "timerfd", "pidfd")
)
_IO_URING = "anon_inode:[io_uring]"
_FUSE_DEVICE, _FUSE_CONNECTION = "/dev/fuse", "fuse_connection"  # the second of its fdinfo
#: File systems whose files are not touched: that may hang.
_REMOTE = ("nfs", "cifs", "smb", "ceph", "9p", "afs", "autofs")
_NOT_ARMED = "(0, 0)"
#: Descriptors of one epoll that are looked at: each needs its own search.
_MAX_POLLED = 1024
_INIT = 1
_DELETED = " (deleted)"  # behind the name of a file that has none any more
#: Roles that need words of their own.
SERVER, OTHER_END = "server", "other end"
NO_OTHER_END = "no process that locktop sees has the other end"


class FileEnd(Struct, frozen=True):
    """The other end of a descriptor."""

    object: str  # what the descriptor refers to, for a person
    role: str = ""  # what a process at the other end is, as "writer"
    pids: tuple[int, ...] = ()  # the processes at the other end
    #: who else may make it ready, as "a new connection"; "": nobody
    other_end: str = ""
    doubt: str = ""  # why other processes may have this end too


class FileEnds:
    """The other ends of descriptors, in one scan at the machine."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def end(self, pid: int, fd: int, writes: bool | None = None) -> FileEnd:
        """Return the other end of a descriptor.

        Args:
            pid: the process.
            fd: its descriptor.
            writes: whether the thread waits to write, or to read; None: for either.
        """
        if not self._host.has_files:
            return FileEnd(_descriptor_name(fd, ""), other_end=UNTOLD)
        target = self._host.target(pid, fd)
        if target.startswith(_PIPE):
            return self._pipe(pid, fd, target, writes)
        if match := _SOCKET.fullmatch(target):
            return self._socket(int(match[1]))
        if target == _EPOLL:
            return self._epoll(pid, fd)
        if target == _EVENTFD:
            return self._eventfd(pid, fd)
        if target == _TIMERFD:
            return self._timer(pid, fd)
        if target == _PIDFD:
            return self._pidfd(pid, fd)
        if target.startswith(_TERMINALS):
            return FileEnd(target, other_end="somebody at the terminal")
        return self._path(pid, fd, target, writes)

    def any_of(self, ends: Iterable[FileEnd]) -> FileEnd:
        """Return several ends, of which one is enough, as one."""
        every = list(ends)
        objects = list(dict.fromkeys(end.object for end in every))
        text = ", ".join(objects[:3]) + (f" and {len(objects) - 3} more" if objects[3:] else "")
        pids = dict.fromkeys(pid for end in every for pid in end.pids)
        others = list(dict.fromkeys(end.other_end for end in every if end.other_end))
        roles = {end.role for end in every if end.pids}
        role = roles.pop() if len(roles) == 1 else OTHER_END
        doubt = next((end.doubt for end in every if end.doubt), "")
        return FileEnd(text, role, tuple(pids), " or ".join(others[:2]), doubt)

    # ---- pipes and files ----

    def _pipe(self, pid: int, fd: int, target: str, writes: bool | None) -> FileEnd:
        openers = self._host.openers(target)
        if writes is None:
            mine = next((file for file in openers if (file.pid, file.fd) == (pid, fd)), None)
            if mine is not None and mine.reads and mine.writes:  # a FIFO
                return self._shared_end(target, "user", [file.pid for file in openers])
            writes = mine is not None and mine.writes
        others = [file.pid for file in openers if (file.reads if writes else file.writes)]
        role = "reader" if writes else "writer"
        return self._shared_end(_descriptor_name(fd, target), role, others)

    def queue(self, pid: int, fd: int, writes: bool) -> FileEnd:
        """Return the other end of a POSIX message queue (mq_overview(7))."""
        if not self._host.has_files:
            return FileEnd(f"queue {fd}", other_end=UNTOLD)
        target = self._host.target(pid, fd)
        inode = _inode(pid, fd)
        others = [
            file.pid
            for file in self._host.openers(target)
            if (file.reads if writes else file.writes) and _inode(file.pid, file.fd) == inode
        ]
        role = "receiver" if writes else "sender"
        return _doubt_by_name(self._shared_end(f"queue {target}", role, others), target)

    def _fifo(self, pid: int, fd: int, target: str, writes: bool | None) -> FileEnd:
        """A FIFO. A process that waits for commands often has both ends of one."""
        end = self._pipe(pid, fd, target, writes)
        if writes or end.other_end:
            return end
        if set(end.pids) == {pid} and not target.endswith(_DELETED):
            return replace(end, pids=(), other_end="a process that opens its other end")
        return _doubt_by_name(end, target)

    def _path(self, pid: int, fd: int, target: str, writes: bool | None) -> FileEnd:
        """A FIFO has ends like a pipe; other files are ready by themselves."""
        mount = self._mount(pid, fd)
        type_ = mount.type
        if type_.startswith("fuse"):
            return self._fuse(fd, target, mount)
        if type_ == "mqueue":
            return FileEnd(f"queue {target}", other_end="any process")
        if type_ and not type_.startswith(_REMOTE) and _is_fifo(pid, fd):
            return self._fifo(pid, fd, target, writes)
        return FileEnd(_descriptor_name(fd, target), other_end="the kernel")

    @staticmethod
    def _mount(pid: int, fd: int) -> Mount:
        number = dict(open_files.information(pid, fd)).get("mnt_id", "")
        return mounts.mount(pid, int(number)) if number.isdigit() else Mount()

    def _fuse(self, fd: int, target: str, mount: Mount) -> FileEnd:
        """A file of a file system in user space: its daemon has the device open.

        A kernel of 2025 or later tells the file system of each open device.
        """
        connections = {
            file: dict(open_files.information(file.pid, file.fd)).get(_FUSE_CONNECTION, "")
            for file in self._host.openers(_FUSE_DEVICE)
        }
        has_numbers = any(connections.values())
        wanted = str(mount.device) if has_numbers else ""
        daemons = {file.pid for file, number in connections.items() if number == wanted}
        name = f"{_descriptor_name(fd, target)}, of a file system in user space"
        if len(daemons) == 1 or (daemons and has_numbers):
            return self._shared_end(name, "daemon of the file system", sorted(daemons))
        return FileEnd(name, other_end="the daemon of the file system, which is not known")

    def _shared_end(self, name: str, role: str, pids: Iterable[int]) -> FileEnd:
        holders = tuple(dict.fromkeys(pids))
        if not holders:
            return FileEnd(name, role, other_end=NO_OTHER_END)
        return FileEnd(name, role, holders, doubt=self._doubt(holders))

    def _doubt(self, holders: Iterable[int]) -> str:
        """Return why the other end may act although its threads sleep; "" for no reason."""
        rings = {file.pid for file in self._host.openers(_IO_URING)}
        if rings.intersection(holders):
            return "the kernel may do it by io_uring while all threads sleep"
        return self._hidden_holders(holders)

    def _hidden_holders(self, holders: Iterable[int]) -> str:
        """Return the doubt that a process whose files are hidden has the same end; "" for none.

        The first process of a machine gives a pipe to its own children, if to any.
        """
        hidden, processes = self._host.files.hidden, self._host.processes
        may_be_init = any(pid in processes and processes[pid].parent == _INIT for pid in holders)
        if not hidden or (hidden == {_INIT} and not may_be_init):
            return ""
        count = "1 process" if len(hidden) == 1 else f"{len(hidden)} processes"
        return f"the open files of {count} are hidden from this user; root sees them"

    # ---- sockets ----

    def _socket(self, inode: int) -> FileEnd:
        if inode in self._host.unix:
            return self._unix(self._host.unix[inode])
        for row in self._host.internet:
            if row.inode == inode:
                return self._internet(row)
        return FileEnd(f"socket {inode}", other_end="the kernel")

    def _holders(self, inode: int) -> list[int]:
        return [file.pid for file in self._host.openers(f"socket:[{inode}]")]

    def _unix(self, unix: UnixSocket) -> FileEnd:
        if unix.listens:
            return FileEnd(f"unix socket {unix.name}", other_end="a new connection")
        if unix.peer:
            peer = self._host.unix.get(unix.peer)
            name = unix.name or (peer.name if peer is not None else "")
            label = f"unix socket {name}" if name else f"unix socket {unix.inode}"
            return self._shared_end(label, OTHER_END, self._holders(unix.peer))
        for listener in self._host.unix.values():
            if unix.inode in listener.waiting_clients:
                return self.listener(listener)
        return FileEnd(f"unix socket {unix.name}".rstrip(), other_end="any process")

    def listener(self, unix: UnixSocket) -> FileEnd:
        """Return who could accept a connection that waits at a Unix socket."""
        return self._shared_end(f"unix socket {unix.name}", SERVER, self._holders(unix.inode))

    def _internet(self, row: InternetSocket) -> FileEnd:
        if row.listens:
            return FileEnd(f"{row.protocol} {row.local}", other_end="a new connection")
        name = f"{row.protocol} {row.local} -> {row.remote}"
        if not row.is_connected:
            return FileEnd(f"{row.protocol} {row.local}", other_end="any machine")
        rows = [other for other in self._host.internet if row.may_reach(other)]
        for peer in rows:
            if (peer.protocol, peer.local, peer.remote) == (row.protocol, row.remote, row.local):
                if peer.inode:
                    return self._shared_end(name, OTHER_END, self._holders(peer.inode))
                return self._accepting(name, row.remote, rows)
        if row.connects and any(other.listens and _accepts(other, row.remote) for other in rows):
            return self._accepting(name, row.remote, rows)
        return FileEnd(name, other_end=f"{row.remote} on another machine")

    def _accepting(self, name: str, address: str, rows: Iterable[InternetSocket]) -> FileEnd:
        holders = [
            pid
            for row in rows
            if row.listens and _accepts(row, address)
            for pid in self._holders(row.inode)
        ]
        return self._shared_end(name, SERVER, holders)

    # ---- descriptors without a name ----

    def _epoll(self, pid: int, fd: int) -> FileEnd:
        fields = open_files.information(pid, fd)
        watched = [int(rest.split()[0]) for name, rest in fields if name == "tfd"]
        if not watched or len(watched) > _MAX_POLLED:
            return FileEnd(f"epoll {fd}", other_end="descriptors that are not known")
        return self.any_of(self.end(pid, number) for number in watched if number != fd)

    def _eventfd(self, pid: int, fd: int) -> FileEnd:
        own = dict(open_files.information(pid, fd)).get("eventfd-id")
        users = [
            file.pid
            for file in self._host.openers(_EVENTFD)
            if own and dict(open_files.information(file.pid, file.fd)).get("eventfd-id") == own
        ]
        return self._shared_end(f"eventfd {fd}", "user", users or [pid])

    def _timer(self, pid: int, fd: int) -> FileEnd:
        fields = dict(open_files.information(pid, fd))
        if fields.get("it_value", "") == _NOT_ARMED:
            return self._shared_end(f"timer {fd}, which is not set,", "user", [pid])
        return FileEnd(f"timer {fd}", other_end="a timer")

    def _pidfd(self, pid: int, fd: int) -> FileEnd:
        process = int(dict(open_files.information(pid, fd)).get("Pid", "-1"))
        if process <= 0:
            return FileEnd(f"pidfd {fd}", other_end="the kernel")
        return FileEnd(f"the end of {self._host.name(process)}", "process", (process,))


def _descriptor_name(fd: int, target: str) -> str:
    names = {0: "its stdin", 1: "its stdout", 2: "its stderr"}
    if target.startswith(_PIPE):
        return f"{names[fd]} ({target})" if fd in names else f"pipe {fd} ({target})"
    return target or f"descriptor {fd}"


def _doubt_by_name(end: FileEnd, target: str) -> FileEnd:
    """Return an end that further processes can open by its name, as long as it has one."""
    if not end.pids or target.endswith(_DELETED):
        return end
    return replace(end, doubt=end.doubt or f"any process may open {target}")


def _inode(pid: int, fd: int) -> str:
    return dict(open_files.information(pid, fd)).get("ino", "")


def _is_fifo(pid: int, fd: int) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(f"{procfs.shared_directory(pid)}/fd/{fd}").st_mode)
    except OSError:
        return False


def _accepts(listener: InternetSocket, address: str) -> bool:
    """Return whether connections to an address come to a listening socket."""
    host, _, port = listener.local.rpartition(":")
    is_any = host in ("0.0.0.0", "[::]")
    return port == address.rpartition(":")[2] and (is_any or listener.local == address)
