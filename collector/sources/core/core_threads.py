"""The threads of a core, by their registers (NT_PRSTATUS, struct elf_prstatus).

A thread slept in a system call if the dump itself interrupted the call. Then the kernel has left a
code for that in rax: it would have restarted the call. A thread whose call had ended, because
another thread woke it for example, has the result of the call there, and waits no more.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from locktop.collector.linux.saved_process import SavedThread
from locktop.collector.sanitize import clean

_PRSTATUS = struct.Struct("<12xh18xi12x4q32x27Q")  # signal, tid, times; registers of user_regs
_PRPSINFO = struct.Struct("<16x2Ii12x16s80s")  # uid, gid, pid, name, arguments
#: The registers of user_regs_struct (sys/user.h), and the numbers that DWARF has for them.
_NAMES = [
    "r15",
    "r14",
    "r13",
    "r12",
    "rbp",
    "rbx",
    "r11",
    "r10",
    "r9",
    "r8",
    "rax",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "orig_rax",
    "rip",
    "cs",
    "eflags",
    "rsp",
    "ss",
    "fs_base",
    "gs_base",
    "ds",
    "es",
    "fs",
    "gs",
]
FS_BASE = 58  # DWARF's number: the address of the thread's descriptor
_DWARF = {
    "rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8,
    "r9": 9, "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "rip": 16,
    "fs_base": FS_BASE,
}  # fmt: skip
#: EINTR, and the codes for a restart (include/linux/errno.h).
_INTERRUPTED = frozenset({4, 512, 513, 514, 516})
_MAX_CALL = 4096  # no system call of Linux has such a number
MAX_TID = 1 << 22


class ProcessFacts(NamedTuple):
    """The facts of a NT_PRPSINFO note."""

    pid: int
    uid: int
    name: str
    arguments: str  # the first 80 bytes of the command line


def process_facts(note: bytes) -> ProcessFacts:
    """Return the facts of a NT_PRPSINFO note; empty ones if it is damaged."""
    if len(note) < _PRPSINFO.size:
        return ProcessFacts(0, 0, "", "")
    uid, _, pid, name, arguments = _PRPSINFO.unpack_from(note)
    return ProcessFacts(pid, uid, *(clean(text.split(b"\0")[0]) for text in (name, arguments)))


def signal_of(note: bytes) -> int:
    """Return the number of the signal that a NT_PRSTATUS note tells of; 0: none."""
    return int(_PRSTATUS.unpack_from(note)[0]) if len(note) >= _PRSTATUS.size else 0


def thread(note: bytes, name: str) -> SavedThread | None:
    """Return the thread of a NT_PRSTATUS note; None if the note is damaged.

    Args:
        note: the note.
        name: of the thread; "": not known.
    """
    if len(note) < _PRSTATUS.size:
        return None
    _, tid, *times_and_registers = _PRSTATUS.unpack_from(note)
    times, values = times_and_registers[:4], times_and_registers[4:]
    if not 0 < tid <= MAX_TID:
        return None
    registers = dict(zip(_NAMES, values, strict=True))
    cpu_s = times[0] + times[1] / 1e6 + times[2] + times[3] / 1e6
    return SavedThread(
        tid=tid,
        name=name,
        cpu_s=cpu_s if 0.0 <= cpu_s < 1e9 else 0.0,
        call=_call(registers),
        registers={_DWARF[name]: value for name, value in registers.items() if name in _DWARF},
    )


def _call(registers: dict[str, int]) -> bytes:
    """Return the line of the call in which a thread sleeps, as /proc/PID/task/TID/syscall."""
    number, result = registers["orig_rax"], -registers["rax"] & (1 << 64) - 1
    if number >= _MAX_CALL or result not in _INTERRUPTED:
        return b"running\n"
    arguments = (registers[name] for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9"))
    words = [f"{word:#x}" for word in (*arguments, registers["rsp"], registers["rip"])]
    return f"{number} {' '.join(words)}\n".encode()
