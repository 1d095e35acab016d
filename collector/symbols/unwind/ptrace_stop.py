"""A thread's registers and stack, copied while the thread is stopped (ptrace(2)).

Used only if the user allows it. The thread is stopped without a signal, and the same thread of
ours resumes it. If ours ended in between, the kernel would resume it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.stack_memory import StackCopy

#: Bytes of a stack; a deeper stack is cut.
_MAX_STACK = 128 << 10
#: How long a thread may take to stop: one in an uninterruptible call does not stop.
PATIENCE_S = 0.02

_DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_PRSTATUS = 1
_WALL = 0x40000000
#: Calls that end with EINTR if the thread is stopped in them, without a signal (signal(7)).
_NOT_RESTARTED = frozenset({
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "semop", "semtimedop", "msgrcv", "msgsnd",
    "rt_sigtimedwait", "io_getevents", "io_pgetevents", "io_uring_enter",
})  # fmt: skip
#: Calls that do so on sockets with a timeout and on inotify, but not on other files.
_BY_FILE = frozenset({
    "read", "readv", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "connect", "sendto",
    "sendmsg", "sendmmsg", "write", "writev",
})  # fmt: skip


class _IoVector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


# PyDLL keeps the GIL: another thread of ours would have it for 5 ms, while the target is stopped.
_libc = ctypes.PyDLL(None, use_errno=True)
ptrace = _libc.ptrace
ptrace.restype = ctypes.c_long
ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_waitpid = _libc.waitpid
_waitpid.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def copy(pid: int, tid: int, architecture: Architecture) -> StackCopy | None:
    """Stop a thread, copy its registers and its stack, and resume it.

    Returns:
        The copy; None if that is not permitted, or if the system call would end early.
    """
    try:
        call = syscalls.parse(procfs.thread_syscall(pid, tid))
    except (OSError, ValueError):
        return None
    if call is not None and not _is_resumed(pid, call):
        return None
    results: list[StackCopy] = []
    # When our thread ends, the kernel resumes what it still traces: a thread that stopped late.
    thread = threading.Thread(
        target=lambda: results.extend(_copies(pid, tid, architecture)), name="stop"
    )
    thread.start()
    thread.join()
    return results[0] if results else None


def _is_resumed(pid: int, call: SystemCall) -> bool:
    """Tell whether a system call goes on after a stop as if nothing had happened."""
    name = syscalls.name(call.number)
    if name in _NOT_RESTARTED:
        return False
    if name not in _BY_FILE:
        return True
    try:
        file = os.readlink(f"{procfs.shared_directory(pid)}/fd/{call.arguments[0]}")
    except OSError:
        return False
    return not file.startswith(("socket:", "anon_inode:"))


def _copies(pid: int, tid: int, architecture: Architecture) -> list[StackCopy]:
    if ptrace(_SEIZE, tid, None, None) != 0:
        return []
    pending = 0
    try:
        if ptrace(_INTERRUPT, tid, None, None) != 0:
            return []
        status = _stop_status(tid)
        if status is None:
            return []
        if not status >> 16:  # a signal came first: it is delivered when the thread resumes
            pending = os.WSTOPSIG(status)
        registers = _registers(tid, architecture)
        sp = registers.get(architecture.sp, 0)
        return [StackCopy(registers, process_memory.read(tid, sp, _MAX_STACK, at_once=True), sp)]
    finally:
        ptrace(_DETACH, tid, None, pending)


def _stop_status(tid: int) -> int | None:
    """Return the wait status of a thread that has stopped; None if it does not, or has ended."""
    status = ctypes.c_int()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        got = _waitpid(tid, ctypes.byref(status), os.WNOHANG | _WALL)
        if got < 0 or (got and not os.WIFSTOPPED(status.value)):
            return None
        if got:
            return status.value
        if time.monotonic() > deadline:
            return None
        _libc.sched_yield()


def _registers(tid: int, architecture: Architecture) -> dict[int, int]:
    words = (ctypes.c_uint64 * 64)()
    piece = _IoVector(ctypes.addressof(words), ctypes.sizeof(words))
    if ptrace(_GETREGSET, tid, _PRSTATUS, ctypes.byref(piece)) != 0:
        return {}
    values = zip(architecture.ptrace, words[: piece.size // 8], strict=False)
    return {register: value for register, value in values if register >= 0}
