"""What the machine code of glibc's pthread_once tells (x86-64): in which function threads wait for
the routine and where the thread that runs it keeps the address of the control.

The function has no name in a stripped library; pthread_once, which has one, jumps to it. A thread
runs the routine where its stack returns to behind the call of it. Before that call the control's
address was put on the stack, for a cancellation to find: into the slot that is read here. Where the
code is not of that form nothing is told.
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

from locktop.collector.unwind.x86_64.frame_offset import written

#: What the exported function is called.
NAMES = ("pthread_once", "__pthread_once")
#: Bytes of code: the function has some 300; and calls in it that may be the routine's.
MAX_CODE = 1024
_MAX_CALLS = 4
_RSP, _RDI = Register.RSP, Register.RDI
_KEPT = frozenset({
    Register.RBX, Register.RBP, Register.R12, Register.R13, Register.R14, Register.R15,
})  # fmt: skip
_BRANCHES = frozenset({FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH})
_ENDS = frozenset({
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN,
    FlowControl.EXCEPTION,
})  # fmt: skip


class OnceCode(NamedTuple):
    """The function where threads wait. Addresses are those of the program."""

    start: int
    #: By the address behind the call of the routine: how far above the stack pointer there the
    #: address of the control lies.
    slots: Mapping[int, int]


def is_left_for(code: bytes, start: int, other: int) -> bool:
    """Tell whether the function at ``start`` goes on as the one at ``other``."""
    return any(
        one.flow_control in _BRANCHES and one.near_branch_target == other
        for one in Decoder(64, code, ip=start)
    )


def once_code(code: bytes, start: int) -> OnceCode:
    """Return what the function tells of those that run a routine."""
    instructions = {one.ip: one for one in Decoder(64, code, ip=start)}
    # Not those through memory: they are of the handler of a cancellation.
    calls = (
        one
        for one in instructions.values()
        if one.code == Code.CALL_RM64 and one.op0_kind == OpKind.REGISTER
    )
    found = ((one, _slot(instructions, start, one)) for one in islice(calls, _MAX_CALLS))
    return OnceCode(start, {one.next_ip: slot for one, slot in found if slot is not None})


def _slot(instructions: Mapping[int, Instruction], start: int, call: Instruction) -> int | None:
    before = _before(instructions, start, call.ip)
    targets = {
        one.near_branch_target
        for ip in before
        if (one := instructions[ip]).flow_control in _BRANCHES
    }
    keeper = _keeper(instructions, start, targets)
    if keeper is None:
        return None
    copied, register = keeper
    if any(
        register in written(instructions[ip]) for ip in before if ip not in (copied, call.ip)
    ):  # fmt: skip
        return None
    return _stored(instructions, call.ip, register, targets)


def _before(instructions: Mapping[int, Instruction], start: int, call: int) -> set[int]:
    """The instructions on all ways from the function's beginning to the call."""
    leads_to: dict[int, list[int]] = {}
    seen, ways = set(), [start]
    while ways:
        ip = ways.pop()
        if ip in seen or ip not in instructions:
            continue
        seen.add(ip)
        for following in _next(instructions[ip]):
            leads_to.setdefault(following, []).append(ip)
            ways.append(following)
    found, ways = set(), [call]
    while ways:
        ip = ways.pop()
        if ip in seen and ip not in found:
            found.add(ip)
            ways.extend(leads_to.get(ip, ()))
    return found


def _next(one: Instruction) -> list[int]:
    following = [one.near_branch_target] if one.flow_control in _BRANCHES else []
    return following if one.flow_control in _ENDS else [*following, one.next_ip]


def _keeper(
    instructions: Mapping[int, Instruction], start: int, targets: Collection[int]
) -> tuple[int, int] | None:
    """Where the first argument is copied to a register that calls leave alone, before anything else
    can happen to it; and that register."""
    ip = start
    while (one := instructions.get(ip)) is not None and (ip == start or ip not in targets):
        if one.mnemonic == Mnemonic.MOV and one.op1_register == _RDI and one.op0_register in _KEPT:
            return ip, one.op0_register
        if one.flow_control != FlowControl.NEXT or _RDI in written(one):
            return None
        ip = one.next_ip
    return None


def _stored(
    instructions: Mapping[int, Instruction], call: int, register: int, targets: Collection[int]
) -> int | None:
    """Where on the stack the register was last stored, in what is run straight to the call."""
    since: list[range] = []  # what was stored on the stack behind it
    for ip in sorted((ip for ip in instructions if ip < call), reverse=True):
        one = instructions[ip]
        if one.flow_control not in (FlowControl.NEXT, FlowControl.CALL) or _RSP in _moved(one):
            return None
        stored = _stack_slot(one)
        if stored is None:
            return None
        if one.code == Code.MOV_RM64_R64 and stored and one.op1_register == register:
            is_kept = not any(set(stored) & set(later) for later in since)
            return stored.start if is_kept else None
        since.append(stored)
        if ip in targets:
            return None
    return None


def _stack_slot(one: Instruction) -> range | None:
    """Where above the stack pointer it stores something; None where it may store anywhere."""
    if one.op_count == 0 or one.op0_kind != OpKind.MEMORY:
        return range(0)
    if one.memory_base != _RSP or one.memory_index != Register.NONE:
        return None
    at = one.memory_displacement
    return range(at, at + MemorySizeExt.size(one.memory_size))


def _moved(one: Instruction) -> set[int]:
    """The registers that it leaves changed: a call comes back with the stack as it was."""
    return set() if one.flow_control == FlowControl.CALL else written(one)
