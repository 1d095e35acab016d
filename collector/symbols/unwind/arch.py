"""Differences between processors: DWARF's numbers of registers, and the kernel's order of them.

The System V ABI for AMD64 (figure 3.36) and DWARF for the Arm 64-bit Architecture (4.1) give
DWARF's numbers. The order of perf is in the kernel's asm/perf_regs.h, that of ptrace in sys/user.h.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping

from msgspec import Struct


class Architecture(Struct, frozen=True):
    """One kind of processor."""

    name: str  # as uname prints it
    elf: str  # pyelftools's name of e_machine
    sp: int
    pc: int
    kept: frozenset[int]  # registers that a function preserves
    perf: tuple[int, ...]  # by perf's number; -1: not used here
    ptrace: tuple[int, ...]  # in the order of NT_PRSTATUS; -1: not used here
    signed_bits: int = 64  # the bits of a signed return address that are the address

    def dwarf_registers(self, values: Mapping[int, int]) -> dict[int, int]:
        """Return the registers of a perf sample by DWARF's numbers; ``values`` are by perf's."""
        values_by_register = (
            (self.perf[n], value) for n, value in values.items() if n < len(self.perf)
        )
        return {register: value for register, value in values_by_register if register >= 0}


_X86_64 = Architecture(
    name="x86_64",
    elf="EM_X86_64",
    sp=7,
    pc=16,
    kept=frozenset({3, 6, 12, 13, 14, 15}),  # rbx, rbp, r12 to r15
    perf=(0, 3, 2, 1, 4, 5, 6, 7, 16, -1, -1, -1, -1, -1, -1, -1, *range(8, 16)),
    ptrace=(15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7),
)
_AARCH64 = Architecture(
    name="aarch64",
    elf="EM_AARCH64",
    sp=31,
    pc=32,
    kept=frozenset(range(19, 30)),
    perf=tuple(range(33)),
    ptrace=tuple(range(33)),
    signed_bits=48,
)
_ARCHITECTURES = {architecture.name: architecture for architecture in (_X86_64, _AARCH64)}


def architecture(name: str = "") -> Architecture | None:
    """Return the architecture of that name, or of this machine; None if it is not supported."""
    return _ARCHITECTURES.get(name or platform.machine())
