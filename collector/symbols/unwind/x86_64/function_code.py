"""The machine code of one function, or of a part of it, as a graph of instructions (x86-64)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register, RegisterExt
from msgspec import Struct

from locktop.collector.symbols.unwind.x86_64.frame_offset import written_registers
from locktop.collector.symbols.unwind.x86_64.machine_state import KEPT_REGISTERS

CALLS = frozenset({FlowControl.CALL, FlowControl.INDIRECT_CALL})
_JUMPS = frozenset({FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH})
#: Control does not go on behind such an instruction.
_ENDS = frozenset({
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN,
    FlowControl.EXCEPTION,
})  # fmt: skip
_FRAME_REGISTERS = (Register.RSP, Register.RBP)
_MAX_SEARCH = 2000  # instructions


class Definition(Struct, frozen=True):
    """Where the value of a register comes from."""

    ip: int = 0  # the instruction; 0: the caller
    #: the instruction stores the register in the frame, which has no other register's value
    is_saved: bool = False


#: The value is that at the begin of the function.
FROM_CALLER = Definition()


class CallResult(NamedTuple):
    """The calls whose result a register has, and what was added to it."""

    calls: frozenset[int]  # their addresses
    offset: int
    is_sure: bool  # the register has nothing else on any way


class FunctionCode:
    """The instructions of a function by their addresses."""

    def __init__(
        self,
        start: int,
        instructions: Mapping[int, Instruction],
        is_at_end: Callable[[int], bool] = lambda ip: False,
    ) -> None:
        """``is_at_end`` tells whether the frame has only its return address left before an
        instruction."""
        self.start = start
        self._is_at_end = is_at_end
        self.instructions = instructions
        #: By instruction, register, and how many copies led there (allocated_objects.py).
        self.call_results: dict[tuple[int, int, int], CallResult | None] = {}
        self._definitions: dict[tuple[int, int], tuple[Definition, ...]] = {}

    @cached_property
    def ends(self) -> Mapping[int, Instruction]:
        """The instructions by the addresses behind them."""
        return {instruction.next_ip: instruction for instruction in self.instructions.values()}

    @cached_property
    def may_return(self) -> bool:
        """Whether an instruction returns, or leads to other code."""
        for instruction in self.instructions.values():
            flow = instruction.flow_control
            if flow in (FlowControl.RETURN, FlowControl.INDIRECT_BRANCH):
                return True
            if flow in _JUMPS and instruction.near_branch_target not in self.instructions:
                return True
        return not self.instructions

    @cached_property
    def returns(self) -> tuple[int, ...]:
        """The addresses where the function returns; none if it also leads to other code."""
        returns = []
        for instruction in self.instructions.values():
            flow = instruction.flow_control
            if flow is FlowControl.RETURN:
                returns.append(instruction.ip)
            elif flow is FlowControl.INDIRECT_BRANCH or (
                flow in _JUMPS and instruction.near_branch_target not in self.instructions
            ):
                return ()
        return tuple(returns)

    @cached_property
    def addresses(self) -> frozenset[int]:
        """The addresses of data that instructions name."""
        return frozenset({
            instruction.ip_rel_memory_address
            if instruction.is_ip_rel_memory_operand
            else instruction.immediate(1)
            for instruction in self.instructions.values()
            if instruction.is_ip_rel_memory_operand
            or (instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.IMMEDIATE32)
        })  # fmt: skip

    def definitions(self, ip: int, register: int) -> tuple[Definition, ...]:
        """Return where the value comes from that a register has before an instruction.

        Returns:
            One definition for each way there; none if a way is not known.
        """
        key = (ip, register)
        if key not in self._definitions:
            self._definitions[key] = self._search(ip, register)
        return self._definitions[key]

    def _search(self, ip: int, register: int) -> tuple[Definition, ...]:
        definitions: set[Definition] = set()
        seen, ways = {ip}, [ip]
        while ways:
            ip = ways.pop()
            if ip == self.start:
                definitions.add(FROM_CALLER)
            before = self.predecessors.get(ip, ())
            if not before and ip != self.start:
                if self.instructions[ip].mnemonic == Mnemonic.NOP:
                    continue
                return ()  # the handler of an exception begins here
            for previous in before:
                if previous in seen:
                    continue
                seen.add(previous)
                definition = self._definition(self.instructions[previous], register)
                if definition is None:
                    ways.append(previous)
                else:
                    definitions.add(definition)
            if len(seen) > _MAX_SEARCH:
                return ()
        return tuple(definitions)

    def _definition(self, instruction: Instruction, register: int) -> Definition | None:
        if instruction.flow_control in CALLS:
            is_kept = register in KEPT_REGISTERS
            return None if is_kept else Definition(instruction.ip)
        if self._saves(instruction, register):
            return Definition(instruction.ip, is_saved=True)
        if register in written_registers(instruction):
            return Definition(instruction.ip)
        return None

    def _saves(self, instruction: Instruction, register: int) -> bool:
        slot = frame_slot(instruction)
        return (
            slot is not None
            and instruction.mnemonic == Mnemonic.MOV
            and instruction.op1_kind == OpKind.REGISTER
            and instruction.op1_register == register
            and self._slot_sources.get(slot) == {register}
        )

    @cached_property
    def _slot_sources(self) -> Mapping[tuple[int, int], set[int]]:
        """The registers that instructions store in each slot of the frame; 0 for other values."""
        sources: dict[tuple[int, int], set[int]] = {}
        for instruction in self.instructions.values():
            slot = frame_slot(instruction)
            if slot is not None:
                is_copy = (
                    instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER
                )
                source = int(instruction.op1_register) if is_copy else 0
                sources.setdefault(slot, set()).add(source)
        return sources

    @cached_property
    def predecessors(self) -> Mapping[int, list[int]]:
        """The instructions before each one, without padding and handlers of exceptions."""
        predecessors: dict[int, list[int]] = {}
        for ip in self._reachable:
            for following in _following(self.instructions[ip]):
                predecessors.setdefault(following, []).append(ip)
        return predecessors

    @cached_property
    def _reachable(self) -> Collection[int]:
        """The instructions to which ways lead; all, if it is not known where a jump leads."""
        reachable: set[int] = set()
        ways = [self.start]
        while ways:
            instruction = self.instructions.get(ways.pop())
            if instruction is None or instruction.ip in reachable:
                continue
            is_indirect = instruction.flow_control is FlowControl.INDIRECT_BRANCH
            if is_indirect and not self._is_at_end(instruction.ip):
                return self.instructions.keys()
            reachable.add(instruction.ip)
            ways += _following(instruction)
        return reachable


def _following(instruction: Instruction) -> list[int]:
    """Return where control may go on behind an instruction."""
    flow = instruction.flow_control
    following = [instruction.near_branch_target] if flow in _JUMPS else []
    return following if flow in _ENDS else [*following, instruction.next_ip]


class FunctionSource(Protocol):
    """The code of the process."""

    def function(self, address: int) -> FunctionCode:
        """Return the function at an address; an empty one if its code is not known."""
        ...

    def target(self, call: Instruction) -> int:
        """Return the target of a call; 0 if the call does not give it."""
        ...

    def is_libc(self, address: int) -> bool:
        """Return whether the code at an address belongs to the C library."""
        ...

    def allocates(self, call: Instruction) -> bool:
        """Return whether a call returns a new object, which no other code knows yet."""
        ...

    def destination(self, address: int) -> int:
        """Return the function to which a jump to an address leads."""
        ...

    def frame_size(self, ip: int) -> int | None:
        """Return how far the stack pointer is below the frame's end at an instruction."""
        ...

    def is_at_end(self, ip: int) -> bool:
        """Return whether a frame has only its return address left before an instruction."""
        ...


def frame_slot(instruction: Instruction) -> tuple[int, int] | None:
    """Return the base and the displacement of the slot that an instruction writes."""
    if not instruction.op_count or instruction.op0_kind != OpKind.MEMORY:
        return None
    if instruction.mnemonic in (Mnemonic.CMP, Mnemonic.TEST):
        return None
    base = RegisterExt.full_register(instruction.memory_base)
    if base not in _FRAME_REGISTERS or instruction.memory_index != Register.NONE:
        return None
    return base, instruction.memory_displacement
