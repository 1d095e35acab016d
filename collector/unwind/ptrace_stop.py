"""A thread's registers and stack, copied while it is stopped (ptrace(2)).

Only where the user asked for it. It is stopped without a signal, and let go by the same thread of
ours; were that to end in between, the kernel would let it go.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.unwind.arch import Machine
from locktop.collector.unwind.stack_memory import Copy

#: Bytes of a stack; deeper ones are cut.
_MAX_STACK = 128 << 10
#: How long a thread may take to stop: one that the kernel holds fast does not.
_PATIENCE_S = 0.02

_DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_PRSTATUS = 1
_WALL = 0x40000000
#: Calls that end with EINTR when a thread was stopped in them, though no signal came (signal(7)).
_NOT_RESTARTED = frozenset({
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "semop", "semtimedop", "msgrcv", "msgsnd",
    "rt_sigtimedwait", "io_getevents", "io_pgetevents", "io_uring_enter",
})  # fmt: skip
#: The same of sockets with a timeout, and of inotify: which it is tells the file.
_BY_FILE = frozenset({
    "read", "readv", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "connect", "sendto",
    "sendmsg", "sendmmsg", "write", "writev",
})  # fmt: skip


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


# Calls that keep the interpreter: who waits for it has it for 5 ms, and a thread stands still.
_libc = ctypes.PyDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_waitpid = _libc.waitpid
_waitpid.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def copy(pid: int, tid: int, machine: Machine) -> Copy | None:
    """Stop a thread, copy what it has, let it go on. None where that may not be, or where its
    system call would end early."""
    try:
        call = syscalls.parse(procfs.thread_syscall(pid, tid))
    except (OSError, ValueError):
        return None
    if call is not None and not _goes_on(pid, call):
        return None
    found: list[Copy] = []
    # A thread of ours that ends lets go whatever it still holds, also what did not stop in time.
    one = threading.Thread(target=lambda: found.extend(_copies(pid, tid, machine)), name="stop")
    one.start()
    one.join()
    return found[0] if found else None


def _goes_on(pid: int, call: SystemCall) -> bool:
    """Whether a system call goes on as if nothing had been."""
    name = syscalls.name(call.number)
    if name in _NOT_RESTARTED:
        return False
    if name not in _BY_FILE:
        return True
    try:
        file = os.readlink(f"{procfs.shared(pid)}/fd/{call.arguments[0]}")
    except OSError:
        return False
    return not file.startswith(("socket:", "anon_inode:"))


def _copies(pid: int, tid: int, machine: Machine) -> list[Copy]:
    if _ptrace(_SEIZE, tid, None, None) != 0:
        return []
    pending = 0
    try:
        if _ptrace(_INTERRUPT, tid, None, None) != 0:
            return []
        status = _stopped(tid)
        if status is None:
            return []
        if not status >> 16:  # a signal came first: it is handed over when the thread goes on
            pending = os.WSTOPSIG(status)
        registers = _registers(tid, machine)
        sp = registers.get(machine.sp, 0)
        return [Copy(registers, process_memory.read(tid, sp, _MAX_STACK, at_once=True), sp)]
    finally:
        _ptrace(_DETACH, tid, None, pending)


def _stopped(tid: int) -> int | None:
    """Wait until a thread stands still; None if it does not, or has ended."""
    status = ctypes.c_int()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        got = _waitpid(tid, ctypes.byref(status), os.WNOHANG | _WALL)
        if got < 0 or (got and not os.WIFSTOPPED(status.value)):
            return None
        if got:
            return status.value
        if time.monotonic() > deadline:
            return None
        _libc.sched_yield()


def _registers(tid: int, machine: Machine) -> dict[int, int]:
    words = (ctypes.c_uint64 * 64)()
    piece = _Piece(ctypes.addressof(words), ctypes.sizeof(words))
    if _ptrace(_GETREGSET, tid, _PRSTATUS, ctypes.byref(piece)) != 0:
        return {}
    told = zip(machine.ptrace, words[: piece.size // 8], strict=False)
    return {register: value for register, value in told if register >= 0}
