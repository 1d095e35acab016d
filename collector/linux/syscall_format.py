"""Formats a system call for users: write(7 -> /var/lib/x/wal)."""

from __future__ import annotations

import struct

from locktop.collector.linux import file_descriptors, process_memory, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.sanitize import clean

#: Calls whose first argument is a file descriptor.
FD_CALLS = {
    "accept", "accept4", "close", "connect", "copy_file_range", "dup2", "dup3", "epoll_ctl",
    "epoll_pwait", "epoll_pwait2", "epoll_wait", "fadvise64", "fallocate", "fchmod", "fchown",
    "fcntl", "fdatasync", "flock", "fstat", "fsync", "ftruncate", "getdents", "getdents64",
    "io_uring_enter", "ioctl", "listen", "lseek", "mq_timedreceive", "mq_timedsend", "pread64",
    "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readv",
    "recvfrom", "recvmmsg", "recvmsg", "sendfile", "sendmmsg", "sendmsg", "sendto", "shutdown",
    "splice", "sync_file_range", "syncfs", "tee", "vmsplice", "write", "writev",
}  # fmt: skip
#: Calls whose argument of this number is a path.
PATH_CALLS = {
    "access": 0, "chmod": 0, "chown": 0, "creat": 0, "execve": 0, "lstat": 0, "mkdir": 0, "open": 0,
    "readlink": 0, "rename": 0, "rmdir": 0, "stat": 0, "statfs": 0, "truncate": 0, "umount2": 0,
    "unlink": 0, "execveat": 1, "faccessat": 1, "faccessat2": 1, "fchmodat": 1, "fchownat": 1,
    "mkdirat": 1, "newfstatat": 1, "openat": 1, "openat2": 1, "readlinkat": 1, "renameat": 1,
    "renameat2": 1, "statx": 1, "unlinkat": 1,
}  # fmt: skip
#: Calls whose argument of this number is a duration, a struct timespec.
_OF_TIME = {"nanosleep": 0, "clock_nanosleep": 2}
_ABSOLUTE = 1  # clock_nanosleep(2): TIMER_ABSTIME
_TIMESPEC = struct.Struct("=qq")
_POLLED = struct.Struct("=ihh")  # struct pollfd
_MAX_POLLED = 4
_MAX_PATH = 256


def describe(pid: int, call: SystemCall) -> str:
    """Return the description of a thread's system call, sanitized; "" without a call.

    Details that cannot be read are left out.
    """
    name = syscalls.name(call.number)
    if not name:
        return ""
    return f"{name}({_details(pid, name, call.arguments)})"


def _details(pid: int, name: str, arguments: tuple[int, ...]) -> str:
    if name in FD_CALLS:
        return _descriptor(pid, arguments[0])
    if name in PATH_CALLS:
        return _path(pid, arguments[PATH_CALLS[name]])
    if name in _OF_TIME:
        return _time(pid, name, arguments)
    if name in ("poll", "ppoll"):
        return _poll_details(pid, arguments[0], arguments[1])
    if name == "wait4" or name == "waitid":
        return _wait_details(name, arguments)
    return ""


def _descriptor(pid: int, fd: int) -> str:
    fd &= 0xFFFFFFFF
    description = file_descriptors.describe(pid, fd)
    return f"{fd} -> {description}" if description else f"{fd}"


def _path(pid: int, address: int) -> str:
    raw = process_memory.read_string(pid, address, _MAX_PATH)
    return clean(raw) if raw else ""


def _time(pid: int, name: str, arguments: tuple[int, ...]) -> str:
    if name == "clock_nanosleep" and arguments[1] & _ABSOLUTE:
        return "until a time"
    raw = process_memory.read(pid, arguments[_OF_TIME[name]], _TIMESPEC.size)
    if len(raw) < _TIMESPEC.size:
        return ""
    seconds, nanoseconds = _TIMESPEC.unpack(raw)
    return f"{seconds + nanoseconds / 1e9:.6g} s"


def _poll_details(pid: int, address: int, count: int) -> str:
    raw = process_memory.read(pid, address, min(count, _MAX_POLLED) * _POLLED.size)
    descriptions = [_descriptor(pid, fd) for fd, _, _ in _POLLED.iter_unpack(raw) if fd >= 0]
    more = f", and {count - _MAX_POLLED} more" if count > _MAX_POLLED else ""
    return ", ".join(descriptions) + more


def _wait_details(name: str, arguments: tuple[int, ...]) -> str:
    child = arguments[0] if name == "wait4" else arguments[1]
    child = child - (1 << 32) if child & 1 << 31 else child
    return f"process {child}" if child > 0 else "any child"
