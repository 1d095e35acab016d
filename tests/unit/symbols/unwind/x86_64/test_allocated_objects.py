"""Objects whose address only a register had, from the assembled code that filled them."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Register
from unit.builders.code_source import STARTS, CodeSource

from locktop.collector.symbols.unwind.x86_64.machine_state import is_allocated
from locktop.collector.symbols.unwind.x86_64.past_values import PastValues, StackFrame

SP = 0x7000
SAVED = 0xA000  # in each word of the stack
LOCK = 0x5000  # in r12, all the while
NEW = "call *%rax; "  # its result is not known
#: Code before the call of the frame, and the word at the address that rbx has there. "saved": that
#: is SAVED. None: nothing is known of the address, or of the word.
WORDS: dict[str, int | str | None] = {
    NEW + "mov %r12, (%rax); mov %rax, %rbx": LOCK,
    NEW + "mov %rax, %rbx; movq $7, 8(%rbx); mov %r12, (%rbx)": LOCK,
    NEW + "mov %r12, 16(%rax); lea 16(%rax), %rbx": LOCK,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; orq $1, (%rbx)": LOCK + 1,
    NEW + "movq $1, (%rax); mov %rax, %rbx; lock addl $1, (%rbx)": 2,
    NEW + "movq $1, (%rax); mov %rax, %rbx; je 1f; movq $0, (%rbx); 1:": None,
    NEW + "movq $1, (%rax); mov %rax, %rbx; movq $0, (%rbx)": 0,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; mov %ecx, (%rbx)": None,
    "je 1f; " + NEW + "jmp 2f; 1: " + NEW + "2: mov %r12, (%rax); mov %rax, %rbx": LOCK,
    "1: " + NEW + "mov %r12, (%rax); mov %rax, %rbx; dec %ecx; jne 1b": LOCK,
    # the address goes where others may write to the object, or is no such one on some way
    NEW + "mov %rax, %rbx": None,
    "call *%rdx; mov %r12, (%rax); mov %rax, %rbx": None,  # an object that others know
    NEW + "mov %r12, (%rax); mov %rax, %rbx; mov %rbx, %rdi; call *%rcx": None,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; mov %rbx, (%r12)": None,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; movq %rbx, %xmm0": None,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; mov %rcx, (%rbx,%rcx)": None,
    NEW + "mov %r12, (%rax); mov %rax, %rbx; jne 1f; xor %ebx, %ebx; 1:": None,
    # the frame has a copy
    NEW + "mov %rax, %rbx; mov %rax, 16(%rsp)": "saved",
    NEW + "mov %rax, %rbx; mov %rax, 16(%rsp); mov %rcx, 16(%rsp)": None,
    NEW + "mov %rax, %rbx; je 1f; mov %rax, 16(%rsp); 1:": None,
}


def read(address: int, size: int) -> bytes:
    """Return the words of the test."""
    return SAVED.to_bytes(8, "little")[:size]


@pytest.mark.parametrize("before", WORDS)
def test_an_object_is_as_the_code_left_it(before: str, tmp_path: Path) -> None:
    source = CodeSource(tmp_path, before + "; call f1; ret")
    calls = source.function(STARTS[0]).instructions.values()
    returns = next(call.next_ip for call in calls if source.target(call) == STARTS[1])
    frames = [StackFrame(returns, {Register.RSP: SP, Register.R12: LOCK})]
    frames.append(StackFrame(STARTS[2], {Register.RSP: SP + 8, Register.R12: LOCK}))
    past = PastValues(source, frames, read)
    value = past.kept_register(0, Register.RBX)
    if WORDS[before] == "saved":
        assert value == SAVED
    elif WORDS[before] is None:
        assert value is None or (is_allocated(value) and not past.read(value, 8))
    else:
        assert value is not None
        assert is_allocated(value)
        assert int.from_bytes(past.read(value, 8), "little") == WORDS[before]
