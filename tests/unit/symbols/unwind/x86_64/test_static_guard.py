"""The frame that runs an initialiser, in assembled code."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Instruction
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.static_guard import decoded, is_guarded

START, GUARD = 0x1000, 0x1800
#: From the begin of the code: where the calls of acquire, of a function that ends an initialisation
#: and of another one lead.
ACQUIRE, END, OTHER = 0x40, 0x80, 0xC0


def _code(tmp_path: Path, text: str) -> bytes:
    """Return machine code. In the text, GUARD, ACQUIRE, END and OTHER are addresses."""
    names = {"GUARD": GUARD, "ACQUIRE": ACQUIRE, "END": END, "OTHER": OTHER}
    for name, address in names.items():
        text = text.replace(name, f"begin + {address - START if name == 'GUARD' else address}")
    return assembled(tmp_path, f"begin: {text}")


def _is_guarded(tmp_path: Path, before: str, after: str) -> bool:
    """Return the result for the call at the end of ``before``; the first call is acquire's."""
    instructions = decoded(_code(tmp_path, before + after), START)
    returns = START + len(_code(tmp_path, before + "; 9:"))
    acquired = next(
        one.next_ip
        for one in instructions.values()
        if one.is_call_near and one.near_branch_target == START + ACQUIRE
    )

    def is_end(call: Instruction) -> bool | None:
        return call.near_branch_target == START + END if call.is_call_near else None

    return is_guarded(instructions, START, GUARD, acquired, returns, is_end, lambda _: GUARD)


BEGIN = "lea GUARD(%rip), %rdi; call ACQUIRE; test %eax, %eax; je 9f; "
AFTER = "; lea GUARD(%rip), %rdi; call END; 9: ret"
RUNS = [
    BEGIN + "call OTHER",
    BEGIN + "call *%rbx",
    BEGIN + "call OTHER; call OTHER",
    "call OTHER; " + BEGIN + "call OTHER",
    "test %esi, %esi; jne 9f; " + BEGIN + "call OTHER",
    # as compilers write it without optimisation, for size, and for another position
    "lea GUARD(%rip), %rax; mov %rax, %rdi; call ACQUIRE; test %eax, %eax; setne %al;"
    " test %al, %al; je 9f; mov $0, %r12d; call OTHER",
    "lea GUARD(%rip), %rbp; mov %rbp, %rdi; call ACQUIRE; cmp $0, %eax; jne 1f; ret; 1: call OTHER",
    "mov GUARD(%rip), %rdi; call ACQUIRE; test %eax, %eax; je 9f; call OTHER",
    # a loop within the initialisation
    BEGIN + "nop; 1: dec %ebx; jne 1b; call OTHER",
]
DOES_NOT_RUN = [
    # before the initialisation, or beside it
    "test %esi, %esi; jne 1f; " + BEGIN + "1: call OTHER",
    "1: test %esi, %esi; jne 2f; " + BEGIN + "jmp 9f; 2: call OTHER",
    # after its end
    BEGIN + "call END; call OTHER",
    BEGIN + "test %ebx, %ebx; je 2f; call END; 2: call OTHER",
    # the call itself waits for the variable
    "lea GUARD(%rip), %rdi; call ACQUIRE",
    # the code runs if the variable exists
    "lea GUARD(%rip), %rdi; call ACQUIRE; test %eax, %eax; jne 9f; call OTHER; jmp 8f; 8: nop"
    "; 1: call OTHER; jmp 1b",
    # the variable is another one, or not known
    "lea GUARD + 8(%rip), %rdi; call ACQUIRE; test %eax, %eax; je 9f; call OTHER",
    "mov %rbx, %rdi; call ACQUIRE; test %eax, %eax; je 9f; call OTHER",
    # a call may end the initialisation, a jump may lead anywhere
    BEGIN + "call *%rbx; call OTHER",
    "test %esi, %esi; je 1f; jmp *%rbx; 1: " + BEGIN + "call OTHER",
    # the handler of an exception, where no path leads, goes on there
    "jmp 1f; nop; jmp 2f; 1: " + BEGIN + "2: call OTHER",
    # the result is not tested
    "lea GUARD(%rip), %rdi; call ACQUIRE; call OTHER",
    "lea GUARD(%rip), %rdi; call ACQUIRE; mov %ebx, %eax; test %eax, %eax; je 9f; call OTHER",
]


@pytest.mark.parametrize("before", RUNS)
def test_a_call_after_the_guard_was_acquired_runs_the_initialiser(
    before: str, tmp_path: Path
) -> None:
    assert _is_guarded(tmp_path, before, AFTER)


@pytest.mark.parametrize("before", DOES_NOT_RUN)
def test_a_call_that_another_path_reaches_may_not_run_it(before: str, tmp_path: Path) -> None:
    assert not _is_guarded(tmp_path, before, AFTER)
