"""Parses the system call that a thread is in (/proc/PID/task/TID/syscall)."""

from __future__ import annotations

import functools
from typing import NamedTuple

from system_calls import NoSuchArchitecture, NoSuchSystemCall, syscalls

_ARGUMENTS = 6
_FUTEX = frozenset({"futex", "restart_syscall"})


class SystemCall(NamedTuple):
    """The system call in which a thread sleeps."""

    number: int  # of the system call; -1: no system call, for example a page fault
    arguments: tuple[int, ...]  # six; () without a system call
    sp: int  # the stack pointer of the program
    pc: int  # the program's next instruction


@functools.lru_cache(maxsize=4096)  # threads repeat the same calls
def parse(data: bytes) -> SystemCall | None:
    """Parse the kernel's line; return None for a thread that runs. Raises ValueError."""
    if data.startswith(b"running"):
        return None
    first, *words = data.split()
    number, values = int(first), tuple([int(word, 16) for word in words])
    if len(values) != (2 if number < 0 else _ARGUMENTS + 2):
        raise ValueError(f"{len(values)} words of a system call")
    if min(values) < 0 or max(values) >> 64:
        raise ValueError("a word of more than 64 bits")
    *call_arguments, sp, pc = values
    return SystemCall(number=number, arguments=tuple(call_arguments), sp=sp, pc=pc)


@functools.cache
def name(number: int) -> str:
    """Return a system call's name on this machine, or its number as text; "" for none."""
    if number < 0:
        return ""
    try:
        return str(_table().get_name(number))
    except (NoSuchSystemCall, NoSuchArchitecture):
        return f"syscall {number}"


def is_futex(number: int) -> bool:
    """Tell whether threads wait for locks in a system call.

    After a stop, the kernel may restart the call under another number (restart_syscall(2)).
    """
    return name(number) in _FUTEX


@functools.cache
def _table() -> syscalls:
    # From a package: C headers have the numbers only as macros, for their own machine only.
    return syscalls()
