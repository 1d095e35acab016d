"""Calls through registers and memory, by the assembled bytes before a return address."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.calls import MAX_CALL, is_indirect_call

CALLS = (
    "call *%rax", "call *%r12", "call *(%rax)", "call *(%r12)", "call *8(%rbp)", "call *8(%rsp)",
    "call *0x1234(%rip)", "call *0x1234(%rbx)", "call *0x1234", "call *(%rax,%rbx,8)",
    "call *0x1234(%rax,%rbx,8)", "call *(%rbp)", "call *(,%rax,8)", "call *(%r13,%rax)",
)  # fmt: skip
#: A direct call with a distance that looks like the begin of an indirect one, and others.
OTHERS = ("call .-0x16a01+5", "nop", "jmp *%rax", "ret")


@pytest.mark.parametrize("code", CALLS)
def test_an_indirect_call_is_recognised(code: str, tmp_path: Path) -> None:
    assert is_indirect_call(_before(code, tmp_path))


@pytest.mark.parametrize("code", OTHERS)
def test_other_code_is_no_indirect_call(code: str, tmp_path: Path) -> None:
    assert not is_indirect_call(_before(code, tmp_path))


def _before(code: str, directory: Path) -> bytes:
    return assembled(directory, "nop; " * MAX_CALL + code)[-MAX_CALL:]
