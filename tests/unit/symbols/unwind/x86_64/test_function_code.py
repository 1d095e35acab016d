"""The graph of the instructions of one function."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Instruction, Mnemonic, Register
from unit.builders.code_source import STARTS, CodeSource

from locktop.collector.symbols.unwind.x86_64.function_code import FROM_CALLER, FunctionCode

#: Whether a function may return, and how often it returns; 0 if it also leads to other code.
ENDS = {
    "ret": (True, 1),
    "test %edi, %edi; je 1f; ret; 1: ret": (True, 2),
    "jmp f1": (True, 0),
    "test %edi, %edi; je f1; ret": (True, 0),
    "jmp *%rax": (True, 0),
    "1: pause; jmp 1b": (False, 0),
    "call f1; ud2": (False, 0),
}
#: The register rbx before the only nop: the number of its definitions, and of those by the caller.
#: Without a definition, a way is not known.
DEFINITIONS = {
    "nop; ret": (1, 1),
    "mov %rdi, %rbx; nop; ret": (1, 0),
    "mov $1, %bl; nop; ret": (1, 0),
    "call f1; nop; ret": (1, 1),
    "test %edi, %edi; je 1f; mov %rdi, %rbx; 1: nop; ret": (2, 1),
    "1: add $8, %rbx; dec %eax; jne 1b; nop; ret": (1, 0),
    "ret; nop; ret": (0, 0),  # such as the handler of an exception
}


def function(text: str, directory: Path) -> FunctionCode:
    return CodeSource(directory, text).function(STARTS[0])


def instruction_of(code: FunctionCode, mnemonic: int) -> Instruction:
    (single,) = (one for one in code.instructions.values() if one.mnemonic == mnemonic)
    return single


@pytest.mark.parametrize("text", ENDS)
def test_a_function_returns_or_leads_to_other_code(text: str, tmp_path: Path) -> None:
    code = function(text, tmp_path)
    assert (code.may_return, len(code.returns)) == ENDS[text]


def test_a_function_without_known_code_may_return() -> None:
    code = FunctionCode(STARTS[0], {})
    assert (code.may_return, code.returns, code.addresses) == (True, (), frozenset())


@pytest.mark.parametrize("text", DEFINITIONS)
def test_a_register_has_the_values_of_all_ways(text: str, tmp_path: Path) -> None:
    code = function(text, tmp_path)
    nop = instruction_of(code, Mnemonic.NOP)
    definitions = code.definitions(nop.ip, Register.RBX)
    of_caller = [one for one in definitions if one == FROM_CALLER]
    assert (len(definitions), len(of_caller)) == DEFINITIONS[text]


def test_a_call_changes_the_registers_that_it_need_not_keep(tmp_path: Path) -> None:
    code = function("mov %rdi, %rcx; call f1; nop; ret", tmp_path)
    nop = instruction_of(code, Mnemonic.NOP)
    (definition,) = code.definitions(nop.ip, Register.RCX)
    assert definition.ip == instruction_of(code, Mnemonic.CALL).ip


@pytest.mark.parametrize("other", ["", "mov %rcx, 8(%rsp);"])
def test_a_register_is_saved_in_a_slot_of_its_own(other: str, tmp_path: Path) -> None:
    code = function(f"{other} mov %rbx, 8(%rsp); nop; ret", tmp_path)
    nop = instruction_of(code, Mnemonic.NOP)
    (definition,) = code.definitions(nop.ip, Register.RBX)
    assert definition.is_saved is not bool(other)


def test_the_data_that_instructions_name(tmp_path: Path) -> None:
    code = function("mov f2(%rip), %rax; lea f3(%rip), %rcx; mov $0x1234, %edx; ret", tmp_path)
    assert code.addresses == {STARTS[2], STARTS[3], 0x1234}


def test_the_instructions_are_known_by_what_follows_them(tmp_path: Path) -> None:
    code = function("call f1; nop; ret", tmp_path)
    call, nop = (instruction_of(code, kind) for kind in (Mnemonic.CALL, Mnemonic.NOP))
    assert code.ends[nop.ip] == call
