"""In which system call a thread is, as the kernel tells it (/proc/PID/task/TID/syscall)."""

from __future__ import annotations

import functools
from typing import NamedTuple

from system_calls import NoSuchArchitecture, NoSuchSystemCall, syscalls

_ARGUMENTS = 6
_FUTEX = frozenset({"futex", "restart_syscall"})


class SystemCall(NamedTuple):
    """Where a thread sleeps in the kernel."""

    number: int  # of the system call; -1: in none, as in a page fault
    arguments: tuple[int, ...]  # six; () where it is in none
    sp: int  # its stack pointer in the program
    pc: int  # where it goes on there


@functools.lru_cache(maxsize=4096)  # threads come back to the same calls again and again
def parse(data: bytes) -> SystemCall | None:
    """Parse what the kernel tells; None for a thread that runs. Raises ValueError."""
    if data.startswith(b"running"):
        return None
    first, *words = data.split()
    number, values = int(first), tuple([int(word, 16) for word in words])
    if len(values) != (2 if number < 0 else _ARGUMENTS + 2):
        raise ValueError(f"{len(values)} words of a system call")
    if min(values) < 0 or max(values) >> 64:
        raise ValueError("a word that is none of 64 bits")
    return SystemCall(number, values[:-2], values[-2], values[-1])


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
    """Whether threads wait for locks in that system call; begun anew after a stop it may have
    another number."""
    return name(number) in _FUTEX


@functools.cache
def _table() -> syscalls:
    # For all machines: the C headers have the numbers only as macros, and those of theirs alone.
    return syscalls()
