"""How far a function's frame register is from its stack pointer, by its machine code (x86-64).

The kernel tells a sleeping thread's stack pointer and nothing of rbp. Where call frame information
counts from rbp, the code between the function's first instruction and the call tells how much was
pushed and reserved since rbp was set: on all ways that lead there, or it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from iced_x86 import (
    Decoder,
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

#: Bytes of a function; an instruction takes some 5 us.
MAX_CODE = 64 << 10
#: Bytes that a pointer to the stack is aligned to at most.
_MAX_ALIGNED = 128
_PROBED = 0x1000

#: By DWARF's numbers.
_REGISTERS = {
    3: Register.RBX, 6: Register.RBP, 10: Register.R10, 12: Register.R12, 13: Register.R13,
    14: Register.R14, 15: Register.R15,
}  # fmt: skip
_RSP = Register.RSP
_CALLS = frozenset({FlowControl.CALL, FlowControl.INDIRECT_CALL})
_JUMPS = frozenset({FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH})
_ENDS = frozenset({
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN,
    FlowControl.EXCEPTION,
})  # fmt: skip
_WRITES = frozenset({
    OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE,
})  # fmt: skip


_PUSHES = frozenset({Mnemonic.PUSH, Mnemonic.POP, Mnemonic.PUSHFQ, Mnemonic.POPFQ})
_LOOP = [Mnemonic.SUB, Mnemonic.CMP, Mnemonic.JNE]
_LEAVE = (Mnemonic.LEAVE, Register.RBP)
_IMMEDIATE = range(OpKind.IMMEDIATE8, OpKind.IMMEDIATE32TO64 + 1)


class Distance(NamedTuple):
    """The frame register minus the stack pointer: ``size``, and if ``aligned`` is not 0 up to so
    many bytes more: since the stack pointer was a multiple of it, ``after`` bytes were taken."""

    size: int
    aligned: int = 0
    after: int = 0


class _Unset:
    """The frame register is the caller's."""


class _Mixed:
    """It may be one or the other."""


_UNSET, _MIXED = _Unset(), _Mixed()
_State = Distance | _Unset | _Mixed


def distance(
    code: bytes, start: int, address: int, register: int, *, is_return: bool
) -> Distance | None:
    """Return how far ``register`` is from the stack pointer before the instruction at ``address``,
    or where a call returns to it; None where the code does not tell. ``code`` is the function's,
    which begins at ``start``."""
    frame = _REGISTERS.get(register)
    if frame is None or len(code) > MAX_CODE:
        return None
    flow = _Flow(Decoder(64, code, ip=start), frame)
    flow.follow_until(start, address)
    return flow.returned(address) if is_return else flow.before(address)


def jumps_out(code: bytes, start: int) -> bool:
    """Tell whether a function may go on as another one, by a jump instead of a call."""
    if len(code) > MAX_CODE:
        return True
    for one in Decoder(64, code, ip=start):
        if one.flow_control == FlowControl.INDIRECT_BRANCH:
            return True
        if one.flow_control in _JUMPS and not 0 <= one.near_branch_target - start < len(code):
            return True
    return False


class _Flow:
    """Follows all ways through a function."""

    def __init__(self, instructions: Decoder, frame: int) -> None:
        self._frame = frame
        self._by_address = {one.ip: one for one in instructions}
        self._before: dict[int, _State] = {}
        self._returned: dict[int, _State] = {}  # by the address behind a call
        self._outside: set[_State] = set()  # at calls, and at jumps to where a table tells

    def follow_until(self, start: int, wanted: int) -> None:
        """Go all ways from ``start``, and further until ``wanted`` was come by."""
        self._follow(start, _UNSET)
        for address in self._by_address:
            if wanted in self._returned or wanted in self._before:
                return
            if address not in self._before:
                # Behind a table of jumps, or a handler of exceptions: no instruction seen leads
                # there. What holds at all that may lead there holds there.
                if len(self._outside) != 1:
                    return
                self._follow(address, *self._outside)

    def before(self, address: int) -> Distance | None:
        """Return what holds before an instruction."""
        found = self._before.get(address)
        return found if isinstance(found, Distance) else None

    def returned(self, address: int) -> Distance | None:
        """Return what holds where the call before an address returns."""
        found = self._returned.get(address)
        return found if isinstance(found, Distance) else None

    def _follow(self, address: int, state: _State) -> None:
        ways = [(address, state)]
        while ways:
            address, state = ways.pop()
            known = self._before.get(address)
            if known is not None:
                if known == state or known is _MIXED:
                    continue
                state = _MIXED
            instruction = self._by_address.get(address)
            if instruction is not None:  # else another function's
                self._before[address] = state
                ways.extend(self._next(instruction, state))

    def _next(self, one: Instruction, state: _State) -> Iterator[tuple[int, _State]]:
        after, flow = one.next_ip, one.flow_control
        if flow in _CALLS:
            known = self._returned.setdefault(after, state)
            self._returned[after] = state if known == state else _MIXED
            self._leave(state)
            yield after, state
            return
        if flow in _JUMPS:
            yield one.near_branch_target, state
        elif flow == FlowControl.INDIRECT_BRANCH:
            self._leave(state)
        if flow not in _ENDS:
            probed = self._probed(one)
            yield probed if probed is not None else after, _effect(one, state, self._frame, probed)

    def _leave(self, state: _State) -> None:
        if state is not _UNSET:  # a handler is of what was called later
            self._outside.add(state)

    def _probed(self, one: Instruction) -> int | None:
        """Where a loop ends that touches each page of a large frame, if it begins behind this
        instruction: `lea r11, [rsp - SIZE]` (-fstack-clash-protection)."""
        end = one.op0_register
        if one.mnemonic != Mnemonic.LEA or one.memory_base != _RSP or end in (_RSP, self._frame):
            return None
        loop = []
        address = one.next_ip
        while len(loop) < 4 and (following := self._by_address.get(address)) is not None:
            loop.append(following)
            address = following.next_ip
        if len(loop) < 4 or [part.mnemonic for part in (loop[0], *loop[2:])] != _LOOP:
            return None
        takes, _, compares, again = loop
        is_loop = (
            (takes.op0_register, _immediate(takes)) == (_RSP, _PROBED)
            and (compares.op0_register, compares.op1_register) == (_RSP, end)
            and again.near_branch_target == takes.ip
        )
        return address if is_loop else None


def _effect(one: Instruction, state: _State, frame: int, probed: int | None) -> _State:
    """What holds after an instruction, or after the loop that it begins."""
    if probed is not None:
        return _moved(state, -_displacement(one))
    changed = written(one)
    if frame in changed:
        return _frame_register(one, frame)
    if _RSP not in changed:
        return state
    if one.op0_register == _RSP:
        return _stack_pointer(one, state, frame)
    if one.mnemonic in _PUSHES:
        return _moved(state, -one.stack_pointer_increment)
    return _mixed(state)


def _mixed(state: _State) -> _State:
    return state if isinstance(state, _Unset) else _MIXED


def _frame_register(one: Instruction, frame: int) -> _State:
    if one.mnemonic == Mnemonic.MOV and (one.op0_register, one.op1_register) == (frame, _RSP):
        return Distance(0)
    if one.mnemonic == Mnemonic.LEA and _counts_from(one, _RSP) and one.op0_register == frame:
        return Distance(_displacement(one))
    returned = one.mnemonic == Mnemonic.POP or (one.mnemonic, frame) == _LEAVE
    return _UNSET if returned else _MIXED  # the caller's again


def _stack_pointer(one: Instruction, state: _State, frame: int) -> _State:
    immediate = _immediate(one)
    if one.mnemonic in (Mnemonic.SUB, Mnemonic.ADD) and immediate is not None:
        return _moved(state, immediate if one.mnemonic == Mnemonic.SUB else -immediate)
    if one.mnemonic == Mnemonic.LEA and _counts_from(one, _RSP):
        return _moved(state, -_displacement(one))
    if isinstance(state, Distance):
        if one.mnemonic == Mnemonic.MOV and one.op1_register == frame:
            return Distance(0)
        if one.mnemonic == Mnemonic.LEA and _counts_from(one, frame):
            return Distance(-_displacement(one))
        if one.mnemonic == Mnemonic.AND and immediate is not None and not state.aligned:
            aligned = -immediate
            if 8 < aligned <= _MAX_ALIGNED and not aligned & (aligned - 1):
                return Distance(state.size, aligned)
    return _mixed(state)


def _moved(state: _State, size: int) -> _State:
    if not isinstance(state, Distance):
        return state
    return Distance(state.size + size, state.aligned, state.after + size if state.aligned else 0)


def written(one: Instruction) -> set[int]:
    """Return the registers that an instruction changes, or parts of which it does."""
    used = _factory().info(one).used_registers()
    return {RegisterExt.full_register(part.register) for part in used if part.access in _WRITES}


@cache
def _factory() -> InstructionInfoFactory:
    return InstructionInfoFactory()


def _counts_from(one: Instruction, register: int) -> bool:
    return bool(one.memory_base == register and one.memory_index == Register.NONE)


def _displacement(one: Instruction) -> int:
    return _signed(one.memory_displacement)


def _immediate(one: Instruction) -> int | None:
    has = one.op_count == 2 and one.op1_kind in _IMMEDIATE
    return _signed(one.immediate(1)) if has else None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
