"""The distance of rbp from rsp in assembled code."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.frame_offset import (
    FrameOffset,
    frame_offset,
    jumps_out,
)

RBP = 6
BEGIN = "push %rbp; mov %rsp, %rbp; "
#: The code of a function before its call, and the distance of rbp from rsp at the call.
KNOWN = {
    BEGIN: FrameOffset(0),
    BEGIN + "push %r15; push %rbx; sub $24, %rsp": FrameOffset(40),
    BEGIN + "add $-128, %rsp": FrameOffset(128),
    BEGIN + "sub $64, %rsp; push %rax; pushq 8(%rax); add $16, %rsp": FrameOffset(64),
    BEGIN + "lea -40(%rsp), %rsp": FrameOffset(40),
    BEGIN + "sub $8, %rsp; and $-32, %rsp; sub $64, %rsp": FrameOffset(72, 32, 64),
    "lea 8(%rsp), %r10; and $-32, %rsp; pushq -8(%r10); " + BEGIN + "push %r10": FrameOffset(8),
    "sub $40, %rsp; lea 32(%rsp), %rbp": FrameOffset(32),
    "test %eax, %eax; je 1f; " + BEGIN + "sub $16, %rsp; jmp 2f; 1: ret; 2:": FrameOffset(16),
    BEGIN + "push %rbx; test %eax, %eax; jne 1f; pop %rbx; leave; ret; 1:": FrameOffset(8),
    BEGIN + "sub $16, %rsp; sub %rax, %rsp; lea -16(%rbp), %rsp; mov %rbp, %rsp": None,
    BEGIN + "sub %rax, %rsp": None,
    BEGIN + "test %eax, %eax; je 1f; push %rax; 1:": None,
    BEGIN + "mov %rax, %rbp": None,
    BEGIN + "xor %ebp, %ebp": None,
    BEGIN + "xchg %rax, %rsp": None,
    BEGIN + "pop %rsp": None,
    BEGIN + "leave": None,
    BEGIN + "1: push %rax; dec %ecx; jne 1b": None,
    BEGIN + "lea -0x9000(%rsp), %r11; 1: sub $0x1000, %rsp; orq $0, (%rsp);"
    " cmp %r11, %rsp; jne 1b; sub $8, %rsp": FrameOffset(0x9008),
    BEGIN + "lea -0x9000(%rsp), %r11; 1: sub $0x800, %rsp; orq $0, (%rsp);"
    " cmp %r11, %rsp; jne 1b": None,
    "sub $8, %rsp": None,
    BEGIN + "sub $32, %rsp; call 0; jmp *%rax; .byte 0x90, 0x90": FrameOffset(32),
}  # fmt: skip
START = 0x1000


@pytest.mark.parametrize("before", KNOWN)
def test_the_frame_offset_is_found_or_unknown(before: str, tmp_path: Path) -> None:
    code = assembled(tmp_path, f"{before}; call *%rax")
    wanted, end = KNOWN[before], START + len(code)
    assert frame_offset(code, START, end, RBP, is_return=True) == wanted
    assert frame_offset(code, START, end - 2, RBP, is_return=False) == wanted
    assert frame_offset(code, START, end + 1, RBP, is_return=True) is None
    assert frame_offset(code, START, end, 0, is_return=True) is None


@pytest.mark.parametrize(
    ("code", "out"),
    [
        ("je 1f; nop; 1: ret", False),
        ("call 0; ret", False),
        ("jmp .+100", True),
        ("je .-100", True),
        ("jmp *%rax", True),
    ],
)
def test_jumps_out_of_the_function_are_recognized(code: str, out: bool, tmp_path: Path) -> None:
    assert jumps_out(assembled(tmp_path, code), START) is out
