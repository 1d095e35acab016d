"""The machine code of glibc's pthread_once (x86-64). The code shows in which function threads wait.
The code also shows where the thread that runs the routine keeps the address of the control.

The function has no name in a stripped library, but pthread_once has one and leads to it. A
thread runs the routine if its stack returns behind the call of the routine. Before that call the
function stores the address of the control on the stack, for a cancellation. The offset of that
slot is read here. Code of another form gives no slot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import NamedTuple

from iced_x86 import (
    Code,
    Decoder,
    FlowControl,
    Instruction,
    MemorySizeExt,
    Mnemonic,
    OpKind,
    Register,
)

from locktop.collector.symbols.unwind.x86_64.frame_offset import written_registers

#: Names of the exported function.
NAMES = ("pthread_once", "__pthread_once")
#: Bytes of code: the function has some 300. Calls of it that may be that of the routine.
MAX_CODE = 1024
_MAX_CALLS = 4
_RSP, _RDI = Register.RSP, Register.RDI
_KEPT = frozenset({
    Register.RBX, Register.RBP, Register.R12, Register.R13, Register.R14, Register.R15,
})  # fmt: skip
#: A system call preserves them. GCC 16 keeps the argument in one of them.
_KEPT_IN_SYSTEM_CALLS = frozenset({Register.R8, Register.R9, Register.R10})
_BRANCHES = frozenset({FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH})
#: pthread_once jumps to the function that waits; that of glibc 2.41 calls it.
_LEADS_ON = _BRANCHES | {FlowControl.CALL}
_ENDS = frozenset({
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN,
    FlowControl.EXCEPTION,
})  # fmt: skip


class OnceCode(NamedTuple):
    """The function in which threads wait. Addresses are those of the program."""

    start: int
    #: By return address of the routine's call: bytes from the stack pointer to the slot with the
    #: control's address.
    slots: Mapping[int, int]


def leads_to(code: bytes, start: int, other: int) -> bool:
    """Tell whether the function at ``start`` jumps to the one at ``other``, or calls it."""
    return any(
        instruction.flow_control in _LEADS_ON and instruction.near_branch_target == other
        for instruction in Decoder(64, code, ip=start)
    )


def once_code(code: bytes, start: int) -> OnceCode:
    """Return the slots of the function whose machine code is at ``start``."""
    instructions = {instruction.ip: instruction for instruction in Decoder(64, code, ip=start)}
    # Not calls through memory: the handler of a cancellation makes them.
    calls = (
        instruction
        for instruction in instructions.values()
        if instruction.code == Code.CALL_RM64 and instruction.op0_kind == OpKind.REGISTER
    )
    slots = ((call, _slot(instructions, start, call)) for call in islice(calls, _MAX_CALLS))
    return OnceCode(start, {call.next_ip: slot for call, slot in slots if slot is not None})


def _slot(instructions: Mapping[int, Instruction], start: int, call: Instruction) -> int | None:
    targets = {
        target.near_branch_target
        for ip in _leading_instructions(instructions, start, call.ip)
        if (target := instructions[ip]).flow_control in _BRANCHES
    }
    keeper = _keeper(instructions, start, targets)
    if keeper is None:
        return None
    copied, register = keeper
    stored = _last_store(instructions, call.ip, register, targets)
    if stored is None:
        return None
    store, slot = stored
    before = _leading_instructions(instructions, start, store) - {copied, store}
    own_slots = {
        own_slot.start
        for instruction in instructions.values()
        if (own_slot := _stored_slot(instruction, register))
    }
    # A call changes no register that the compiler reads after it.
    may_change = any(
        register in written_registers(instruction) and _loaded_slot(instruction) not in own_slots
        for instruction in map(instructions.__getitem__, before)
    )
    return None if may_change else slot


def _leading_instructions(
    instructions: Mapping[int, Instruction], start: int, call: int
) -> set[int]:
    """Return the instructions on all paths from the function's start to the call."""
    leads_to: dict[int, list[int]] = {}
    seen, paths = set(), [start]
    while paths:
        ip = paths.pop()
        if ip in seen or ip not in instructions:
            continue
        seen.add(ip)
        for following in _next(instructions[ip]):
            leads_to.setdefault(following, []).append(ip)
            paths.append(following)
    leading, paths = set(), [call]
    while paths:
        ip = paths.pop()
        if ip in seen and ip not in leading:
            leading.add(ip)
            paths.extend(leads_to.get(ip, ()))
    return leading


def _next(instruction: Instruction) -> list[int]:
    following = [instruction.near_branch_target] if instruction.flow_control in _BRANCHES else []
    return following if instruction.flow_control in _ENDS else [*following, instruction.next_ip]


def _keeper(
    instructions: Mapping[int, Instruction], start: int, targets: Collection[int]
) -> tuple[int, int] | None:
    """Return the instruction that copies the first argument to a register that keeps it, and that
    register. Return None if the argument may change before."""
    keepers = _KEPT | _KEPT_IN_SYSTEM_CALLS
    ip = start
    while (instruction := instructions.get(ip)) is not None and (ip == start or ip not in targets):
        if (
            instruction.mnemonic == Mnemonic.MOV
            and instruction.op1_register == _RDI
            and instruction.op0_register in keepers
        ):
            return ip, instruction.op0_register
        if instruction.flow_control != FlowControl.NEXT or _RDI in written_registers(instruction):
            return None
        ip = instruction.next_ip
    return None


def _last_store(
    instructions: Mapping[int, Instruction], call: int, register: int, targets: Collection[int]
) -> tuple[int, int] | None:
    """Return the instruction that last stored the register, and its slot.

    Only straight code before the call counts.
    """
    since: list[range] = []  # stack slots that were written later
    for ip in sorted((ip for ip in instructions if ip < call), reverse=True):
        instruction = instructions[ip]
        if instruction.flow_control not in (
            FlowControl.NEXT,
            FlowControl.CALL,
        ) or _RSP in _changed_registers(instruction):
            return None
        stored = _stack_slot(instruction)
        if stored is None:
            return None
        if _stored_slot(instruction, register):
            is_kept = not any(set(stored) & set(later) for later in since)
            return (ip, stored.start) if is_kept else None
        since.append(stored)
        if ip in targets:
            return None
    return None


def _stack_slot(instruction: Instruction) -> range | None:
    """Return the stack slot that an instruction writes; None if it may write anywhere."""
    if instruction.op_count == 0 or instruction.op0_kind != OpKind.MEMORY:
        return range(0)
    if instruction.memory_base != _RSP or instruction.memory_index != Register.NONE:
        return None
    start = instruction.memory_displacement
    return range(start, start + MemorySizeExt.size(instruction.memory_size))


def _stored_slot(instruction: Instruction, register: int) -> range | None:
    """Return the stack slot in which an instruction stores the register."""
    is_store = instruction.code == Code.MOV_RM64_R64 and instruction.op1_register == register
    return _stack_slot(instruction) if is_store else None


def _loaded_slot(instruction: Instruction) -> int | None:
    """Return the stack slot from which an instruction loads a register."""
    is_load = instruction.code == Code.MOV_R64_RM64 and instruction.memory_base == _RSP
    return (
        instruction.memory_displacement
        if is_load and instruction.memory_index == Register.NONE
        else None
    )


def _changed_registers(instruction: Instruction) -> set[int]:
    """Return the registers that stay changed: a call returns with the stack as it was."""
    return set() if instruction.flow_control == FlowControl.CALL else written_registers(instruction)
