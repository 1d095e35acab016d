"""Known values of registers and memory after assembled instructions."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Decoder, Register
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.machine_state import MachineState
from locktop.collector.symbols.unwind.x86_64.machine_steps import is_taken, step

#: Memory at this address holds the numbers 0, 1, 2 and so on, of 8 bytes each.
NUMBERS = 0x5000
SP = 0x7000
#: Instructions, and rax after them; rbx is NUMBERS, rcx is 6, rdx is not known.
RESULTS: dict[str, int | None] = {
    "mov 16(%rbx), %rax": 2,
    "mov 8(%rbx,%rcx,8), %rax": 7,
    "mov %rdx, %rax": None,
    "mov $5, %eax; mov %dl, %al": None,
    "mov $0x1234, %eax; mov %cl, %al": 0x1206,
    "mov %rdx, %rax; mov $1, %al; movzx %al, %eax": 1,
    "mov $-1, %eax": 0xFFFFFFFF,
    "mov $-1, %eax; cdqe": (1 << 64) - 1,
    "movslq 16(%rbx), %rax": 2,
    "lea -8(%rbx,%rcx,4), %rax": NUMBERS + 16,
    "push %rcx; pop %rax": 6,
    "mov %rcx, -8(%rsp); mov -8(%rsp), %rax": 6,
    "mov %rdx, (%rbx); mov (%rbx), %rax": None,
    "movq %rcx, %xmm0; movhps 16(%rbx), %xmm0; movups %xmm0, -16(%rsp); mov -8(%rsp), %rax": 2,
    "movups 8(%rbx), %xmm1; movaps %xmm1, %xmm2; movq %xmm2, %rax": 1,
    "lea -64(%rsp), %rdi; lea 8(%rbx), %rsi; mov $2, %ecx; rep movsq; mov -8(%rdi), %rax": 2,
    "xor %eax, %eax; cmp $5, %rcx; seta %al": 1,
    "xor %eax, %eax; cmp $7, %rcx; cmovl %rcx, %rax": 6,
    "xor %eax, %eax; cmp $6, %rdx; cmovl %rcx, %rax": None,
    "mov %rcx, %rax; shl $4, %rax; sub %rcx, %rax; neg %rax; not %rax": 89,
    "mov %rcx, %rax; imul $7, %rax, %rax": 42,
    "mov %rcx, %rax; xchg %rax, 8(%rbx)": 1,
    "mov %rcx, %rax; lock xadd %rax, 8(%rbx)": 1,
    "mov %rcx, %rax; lock xadd %rax, 8(%rbx); mov 8(%rbx), %rax": 7,
    "mov $1, %eax; lock cmpxchg %rcx, 8(%rbx); mov 8(%rbx), %rax": 6,
    "mov $3, %eax; lock cmpxchg %rcx, 8(%rbx)": 1,
    "mov %rcx, %rax; btr $1, %rax": 4,
    "mov $1, %eax; cpuid": None,
    "mov $1, %eax; syscall": None,
}
#: Instructions before a jump, the jump, and whether it is taken.
JUMPS: dict[str, bool | None] = {
    "cmp $6, %rcx; je 1f": True,
    "cmp $7, %rcx; jae 1f": False,
    "cmp $-1, %rcx; jg 1f": True,
    "cmp $-1, %rcx; ja 1f": False,
    "test %rcx, %rcx; jle 1f": False,
    "sub $6, %rcx; jne 1f": False,
    "mov $1, %ecx; dec %ecx; js 1f": False,
    "bt $1, %rcx; jb 1f": True,
    "cmp %rdx, %rcx; je 1f": None,
    "cmp $6, %rcx; syscall; add %rdx, %rax; je 1f": None,
}


def read(address: int, size: int) -> bytes:
    """Return some of NUMBERS."""
    numbers = b"".join(number.to_bytes(8, "little") for number in range(16))
    inside = address - NUMBERS
    return numbers[inside : inside + size] if 0 <= inside < len(numbers) else b""


def state() -> MachineState:
    """Return the state before the instructions."""
    return MachineState({Register.RBX: NUMBERS, Register.RCX: 6, Register.RSP: SP}, {})


@pytest.mark.parametrize("code", RESULTS)
def test_an_instruction_gives_the_known_value_or_none(code: str, tmp_path: Path) -> None:
    after = state()
    for instruction in Decoder(64, assembled(tmp_path, code)):
        step(instruction, after, read)
    assert after.register(Register.RAX) == RESULTS[code]


@pytest.mark.parametrize("code", JUMPS)
def test_a_jump_is_taken_by_the_known_flags(code: str, tmp_path: Path) -> None:
    after = state()
    *before, jump = list(Decoder(64, assembled(tmp_path, code + "; 1:")))
    for instruction in before:
        step(instruction, after, read)
    assert is_taken(jump, after) is JUMPS[code]
