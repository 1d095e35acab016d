"""The distance of a frame register from the stack pointer, from the machine code (x86-64).

The kernel gives the stack pointer of a sleeping thread, but not rbp. Some call frame information
counts from rbp. The code between the function's first instruction and the call then shows the
pushes and reservations since rbp was set. The distance is known only if all paths to the call
agree (docs/internals/adr/0004).
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

#: Bytes of a function; the analysis takes some 5 us for each instruction.
MAX_CODE = 64 << 10
#: Bytes.
_MAX_ALIGNMENT = 128
_PROBED_PAGE = 0x1000

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


class FrameOffset(NamedTuple):
    """The frame register minus the stack pointer.

    Attributes:
        size: The distance in bytes; if ``alignment`` is not 0, up to ``alignment`` bytes more.
        alignment: What the code aligned the stack pointer to, in bytes; 0 if it did not.
        taken_since: Bytes that the code took of the stack after the alignment.
    """

    size: int
    alignment: int = 0
    taken_since: int = 0


class _Unset:
    """The frame register still has the caller's value."""


class _Mixed:
    """Paths disagree about the frame register."""


_UNSET, _MIXED = _Unset(), _Mixed()
_State = FrameOffset | _Unset | _Mixed


def frame_offset(
    code: bytes, start: int, address: int, register: int, *, is_return: bool
) -> FrameOffset | None:
    """Return the offset of a frame register before the instruction at an address.

    Args:
        code: The machine code of the function.
        start: The address of ``code``.
        address: The address of the instruction.
        register: DWARF's number of the frame register.
        is_return: Whether a call returns to ``address``.

    Returns:
        The offset; None if it is not known.
    """
    frame = _REGISTERS.get(register)
    if frame is None or len(code) > MAX_CODE:
        return None
    flow = _Flow(Decoder(64, code, ip=start), frame)
    flow.follow_until(start, address)
    return flow.offset_after_call(address) if is_return else flow.offset_before(address)


def jumps_out(code: bytes, start: int) -> bool:
    """Tell whether a function may go on as another function, by a jump instead of a call."""
    if len(code) > MAX_CODE:
        return True
    for instruction in Decoder(64, code, ip=start):
        if instruction.flow_control == FlowControl.INDIRECT_BRANCH:
            return True
        if (
            instruction.flow_control in _JUMPS
            and not 0 <= instruction.near_branch_target - start < len(code)
        ):
            return True
    return False


class _Flow:
    """Follows all paths through a function."""

    def __init__(self, instructions: Decoder, frame: int) -> None:
        self._frame = frame
        self._by_address = {instruction.ip: instruction for instruction in instructions}
        self._before: dict[int, _State] = {}
        self._returned: dict[int, _State] = {}  # by the address behind a call
        self._at_exits: set[_State] = set()  # at calls, and at jumps through a table

    def follow_until(self, start: int, wanted: int) -> None:
        """Follow all paths from ``start``, then further code until ``wanted`` was reached."""
        self._follow(start, _UNSET)
        for address in self._by_address:
            if wanted in self._returned or wanted in self._before:
                return
            if address not in self._before:
                # A target of a jump table, or a handler of exceptions: no instruction leads there.
                # The state that all exits share holds there.
                if len(self._at_exits) != 1:
                    return
                self._follow(address, *self._at_exits)

    def offset_before(self, address: int) -> FrameOffset | None:
        """Return the offset before an instruction; None if it is not known."""
        state = self._before.get(address)
        return state if isinstance(state, FrameOffset) else None

    def offset_after_call(self, address: int) -> FrameOffset | None:
        """Return the offset where the call before an address returns; None if it is not known."""
        state = self._returned.get(address)
        return state if isinstance(state, FrameOffset) else None

    def _follow(self, address: int, state: _State) -> None:
        paths = [(address, state)]
        while paths:
            address, state = paths.pop()
            earlier = self._before.get(address)
            if earlier is not None:
                if earlier == state or earlier is _MIXED:
                    continue
                state = _MIXED
            instruction = self._by_address.get(address)
            if instruction is not None:  # else of another function
                self._before[address] = state
                paths.extend(self._next(instruction, state))

    def _next(self, instruction: Instruction, state: _State) -> Iterator[tuple[int, _State]]:
        after, flow = instruction.next_ip, instruction.flow_control
        if flow in _CALLS:
            earlier = self._returned.setdefault(after, state)
            self._returned[after] = state if earlier == state else _MIXED
            self._leave(state)
            yield after, state
            return
        if flow in _JUMPS:
            yield instruction.near_branch_target, state
        elif flow == FlowControl.INDIRECT_BRANCH:
            self._leave(state)
        if flow not in _ENDS:
            probed = self._probe_end(instruction)
            yield (
                probed if probed is not None else after,
                _effect(instruction, state, self._frame, probed),
            )

    def _leave(self, state: _State) -> None:
        if state is not _UNSET:  # a handler is of what was called later
            self._at_exits.add(state)

    def _probe_end(self, instruction: Instruction) -> int | None:
        """Return the end of a loop that touches each page of a large frame.

        The loop follows the instruction `lea r11, [rsp - SIZE]` (-fstack-clash-protection). None
        if no such loop follows.
        """
        end = instruction.op0_register
        if (
            instruction.mnemonic != Mnemonic.LEA
            or instruction.memory_base != _RSP
            or end in (_RSP, self._frame)
        ):
            return None
        loop = []
        address = instruction.next_ip
        while len(loop) < 4 and (following := self._by_address.get(address)) is not None:
            loop.append(following)
            address = following.next_ip
        if len(loop) < 4 or [part.mnemonic for part in (loop[0], *loop[2:])] != _LOOP:
            return None
        takes, _, compares, again = loop
        is_loop = (
            (takes.op0_register, _immediate(takes)) == (_RSP, _PROBED_PAGE)
            and (compares.op0_register, compares.op1_register) == (_RSP, end)
            and again.near_branch_target == takes.ip
        )
        return address if is_loop else None


def _effect(instruction: Instruction, state: _State, frame: int, probed: int | None) -> _State:
    """Return the state after an instruction, or after the loop that the instruction begins."""
    if probed is not None:
        return _shift(state, -_displacement(instruction))
    changed = written_registers(instruction)
    if frame in changed:
        return _frame_register(instruction, frame)
    if _RSP not in changed:
        return state
    if instruction.op0_register == _RSP:
        return _stack_pointer(instruction, state, frame)
    if instruction.mnemonic in _PUSHES:
        return _shift(state, -instruction.stack_pointer_increment)
    return _mix_states(state)


def _mix_states(state: _State) -> _State:
    return state if isinstance(state, _Unset) else _MIXED


def _frame_register(instruction: Instruction, frame: int) -> _State:
    if instruction.mnemonic == Mnemonic.MOV and (
        instruction.op0_register,
        instruction.op1_register,
    ) == (frame, _RSP):
        return FrameOffset(0)
    if (
        instruction.mnemonic == Mnemonic.LEA
        and _counts_from(instruction, _RSP)
        and instruction.op0_register == frame
    ):
        return FrameOffset(_displacement(instruction))
    returned = instruction.mnemonic == Mnemonic.POP or (instruction.mnemonic, frame) == _LEAVE
    return _UNSET if returned else _MIXED  # the caller's again


def _stack_pointer(instruction: Instruction, state: _State, frame: int) -> _State:
    immediate = _immediate(instruction)
    if instruction.mnemonic in (Mnemonic.SUB, Mnemonic.ADD) and immediate is not None:
        return _shift(state, immediate if instruction.mnemonic == Mnemonic.SUB else -immediate)
    if instruction.mnemonic == Mnemonic.LEA and _counts_from(instruction, _RSP):
        return _shift(state, -_displacement(instruction))
    if isinstance(state, FrameOffset):
        if instruction.mnemonic == Mnemonic.MOV and instruction.op1_register == frame:
            return FrameOffset(0)
        if instruction.mnemonic == Mnemonic.LEA and _counts_from(instruction, frame):
            return FrameOffset(-_displacement(instruction))
        if instruction.mnemonic == Mnemonic.AND and immediate is not None and not state.alignment:
            alignment = -immediate
            if 8 < alignment <= _MAX_ALIGNMENT and not alignment & (alignment - 1):
                return FrameOffset(state.size, alignment)
    return _mix_states(state)


def _shift(state: _State, size: int) -> _State:
    if not isinstance(state, FrameOffset):
        return state
    taken_since = state.taken_since + size if state.alignment else 0
    return FrameOffset(state.size + size, state.alignment, taken_since)


def written_registers(instruction: Instruction) -> set[int]:
    """Return the registers that an instruction changes, wholly or in part."""
    used = _factory().info(instruction).used_registers()
    return {RegisterExt.full_register(part.register) for part in used if part.access in _WRITES}


@cache
def _factory() -> InstructionInfoFactory:
    return InstructionInfoFactory()


def _counts_from(instruction: Instruction, register: int) -> bool:
    return bool(instruction.memory_base == register and instruction.memory_index == Register.NONE)


def _displacement(instruction: Instruction) -> int:
    return _signed_number(instruction.memory_displacement)


def _immediate(instruction: Instruction) -> int | None:
    has = instruction.op_count == 2 and instruction.op1_kind in _IMMEDIATE
    return _signed_number(instruction.immediate(1)) if has else None


def _signed_number(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
