"""The registers at a call that has not returned, from the assembled code before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Register
from unit.builders.code_source import STARTS, CodeSource

from locktop.collector.symbols.unwind.x86_64.past_values import PastValues, StackFrame

SLOT = 0x7010  # 16 bytes above the stack pointer of the inner frame
SP, OUTER_SP = 0x7000, 0x7008
#: Code before the call of the inner function, and rbx at the call. At the call of that function rdi
#: was 0x4000 and r12 was 0x5000; the word at 0x4008 is 0x9000, and that in SLOT is 0xa000. The
#: inner function has saved r13, which was 0x6000.
VALUES: dict[str, int | None] = {
    "mov %rdi, %rbx": 0x4000,
    "mov 8(%rdi), %rbx": 0x9000,
    "lea 16(%rdi), %rbx": 0x4010,
    "mov %r12, %rbx; add $8, %rbx": 0x5008,
    "mov %rdi, %rbx; sub %r12, %rbx; and $0xff000, %ebx": 0xFF000,
    "mov $2, %ecx; mov %rdi, %rbx; shl $4, %rcx; add %rcx, %rbx": 0x4020,
    "xor %ebx, %ebx": 0,
    "mov %rax, %rbx": None,
    "mov %rax, %rbx; mov %rbx, 16(%rsp)": 0xA000,
    "mov %rax, %rbx; mov %rbx, 16(%rsp); mov %rcx, 16(%rsp)": None,
    "test %eax, %eax; je 1f; mov %rdi, %rbx; jmp 2f; 1: mov %r12, %rbx; 2:": None,
    "test %eax, %eax; je 1f; mov %rdi, %rbx; jmp 2f; 1: lea (%rdi), %rbx; 2:": 0x4000,
    "1: add $8, %rbx; dec %eax; jne 1b": None,
    "call f2; mov %rax, %rbx": 0x4018,
    "mov %r13, %rbx": 0x6000,
    "mov %r13, %rbx; mov %rcx, %r13": None,
    "mov %r13, %rbx; jmp 1f; 1: mov %rcx, %r13": None,
}
AFTER = "; call f3; mov %rbx, %rdi; ret"
OUTER = "mov $0x4000, %edi; call f0; ret"
RETURNS_ARGUMENT = "mov %rdi, %rax; add $24, %rax; ret"


def read(address: int, size: int) -> bytes:
    """Return the words of the test."""
    return {0x4008: 0x9000, SLOT: 0xA000}.get(address, 0).to_bytes(8, "little")[:size]


@pytest.mark.parametrize("before", VALUES)
def test_a_register_is_derived_from_the_code_before(before: str, tmp_path: Path) -> None:
    source = CodeSource(tmp_path, before + AFTER, OUTER, RETURNS_ARGUMENT)
    frames = [
        StackFrame(
            _behind_call(source, STARTS[0], STARTS[3]),
            {Register.RSP: SP, Register.R13: 0x6000},
        ),
        StackFrame(
            _behind_call(source, STARTS[1], STARTS[0]),
            {Register.RSP: OUTER_SP, Register.R12: 0x5000},
        ),
    ]
    past = PastValues(source, frames, read)
    assert past.kept_register(0, Register.RBX) == VALUES[before]


def _behind_call(source: CodeSource, start: int, target: int) -> int:
    """Return the address behind the call of a function."""
    calls = source.function(start).instructions.values()
    return next(call.next_ip for call in calls if source.target(call) == target)
