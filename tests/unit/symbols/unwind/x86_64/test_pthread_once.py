"""The slot of pthread_once in assembled code."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.pthread_once import leads_to, once_code

START = 0x1000
BEGIN = "push %rbp; push %rbx; mov %rsi, %rbp; mov %rdi, %rbx; sub $72, %rsp; "
#: Jump to 9 if a routine has run; else try again from 1, or run the routine from 2.
WAYS = "1: mov (%rbx), %eax; test $2, %al; jne 9f; test $1, %al; je 2f; syscall; jmp 1b; 2: "
END = "; movl $2, (%rbx); 9: add $72, %rsp; pop %rbx; pop %rbp; ret"
#: The code before the call of the routine, and the distance of the slot from the stack pointer.
SLOTS = {
    BEGIN + WAYS + "mov %rbx, 8(%rsp); movq $0, (%rsp); call 0; call *%rbp": 8,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); movl $1, 16(%rsp); movups %xmm0, 20(%rsp); call *%rbp": 8,
    BEGIN + "mov %rbx, 8(%rsp); call *%rbp": 8,
    "push %r12; mov %rdi, %r12; mov %rsi, %rbp; sub $64, %rsp; mov %r12, (%rsp); call *%rbp": 0,
    "sub $64, %rsp; mov %rdi, %r8; mov %rsi, %r9; 1: mov (%r8), %eax; test $1, %al; je 2f; "
    "mov %r8, %rdi; syscall; jmp 1b; call 0; 2: mov %r8, 8(%rsp); mov %r9, (%rsp); call 0; "
    "mov (%rsp), %r9; call *%r9": 8,
    # The control is not stored, or a jump may skip the store.
    BEGIN + WAYS + "call *%rbp": None,
    BEGIN + "mov %rbx, 8(%rsp); test %eax, %eax; je 3f; nop; 3: call *%rbp": None,
    BEGIN + "test %eax, %eax; je 3f; mov %rbx, 8(%rsp); 3: nop; call *%rbp": None,
    # Another value is stored in the slot, or may be.
    BEGIN + WAYS + "mov %rax, 8(%rsp); call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); mov %rax, 8(%rsp); call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); movb $0, 15(%rsp); call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); movups %xmm0, (%rsp); call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); mov %rax, (%rcx); call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); mov %rax, (%rsp, %rcx); call *%rbp": None,
    # The stack pointer has changed at the call.
    BEGIN + WAYS + "mov %rbx, 8(%rsp); sub $16, %rsp; call *%rbp": None,
    BEGIN + WAYS + "mov %rbx, 8(%rsp); push %rax; call *%rbp": None,
    # The register may have another value.
    BEGIN + "mov (%rdx), %rbx; mov %rbx, 8(%rsp); call *%rbp": None,
    BEGIN + "test %eax, %eax; je 3f; xor %ebx, %ebx; 3: mov %rbx, 8(%rsp); call *%rbp": None,
    "push %rbx; xor %edi, %edi; mov %rdi, %rbx; mov %rbx, 8(%rsp); call *%rbp": None,
    "push %rbx; call 0; mov %rdi, %rbx; mov %rbx, 8(%rsp); call *%rbp": None,
    "mov %rdi, %rcx; mov %rcx, 8(%rsp); call *%rbp": None,
    "mov %rdi, %r8; xor %r8d, %r8d; mov %r8, 8(%rsp); call *%rbp": None,
    # The routine of a cancellation is called through memory.
    BEGIN + WAYS + "mov %rbx, 8(%rsp); call *(%rsp)": None,
}  # fmt: skip


@pytest.mark.parametrize("before", SLOTS)
def test_the_slot_of_the_once_control_is_found_or_unknown(before: str, tmp_path: Path) -> None:
    returns = START + len(assembled(tmp_path, before + "; 9:"))
    found = once_code(assembled(tmp_path, before + END), START)
    slot = SLOTS[before]
    assert found.slots == ({} if slot is None else {returns: slot})


def test_an_exception_handler_may_change_the_register(tmp_path: Path) -> None:
    text = BEGIN + "mov %rbx, 8(%rsp); call *%rbp" + END + "; mov %rax, %rbx; jmp . + 0x4000"
    assert list(once_code(assembled(tmp_path, text), START).slots.values()) == [8]


def test_a_call_that_never_returns_seems_to_lead_back(tmp_path: Path) -> None:
    text = "mov %rdi, %r8; jmp 2f; 1: call 0; 2: mov %r8, 8(%rsp); call *%rbp; "
    again = "mov 8(%rsp), %r8; test %eax, %eax; jne 1b; ret"
    assert list(once_code(assembled(tmp_path, text + again), START).slots.values()) == [8]
    other = again.replace("8(%rsp)", "16(%rsp)")
    assert once_code(assembled(tmp_path, text + other), START).slots == {}


def test_a_jump_or_a_call_leads_to_the_function(tmp_path: Path) -> None:
    code = assembled(tmp_path, "mov (%rdi), %eax; je 1f; xor %eax, %eax; ret; 1: jmp . + 0x4000")
    target = START + len(code) - 5 + 0x4000
    assert leads_to(code, START, target)
    assert not leads_to(code, START, target + 1)
    called = assembled(tmp_path, "call . + 0x4000; ret")
    assert leads_to(called, START, START + 0x4000), "as in glibc 2.41"
    assert not leads_to(assembled(tmp_path, "call *%rsi; ret"), START, START + 0x4000)


@pytest.mark.parametrize("code", [b"", b"\xff", b"\x06" * 300, bytes(range(256)) * 4])
def test_random_code_has_no_slot(code: bytes) -> None:
    assert once_code(code, START).slots == {}
