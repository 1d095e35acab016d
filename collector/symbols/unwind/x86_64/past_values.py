"""The values that registers had when the calls of a stack were made (x86-64).

The kernel gives two registers of a sleeping thread, and a function that does not need a register
saves it nowhere. The code before the call tells where the value came from: another register, the
frame, or an argument of the function, whose caller is followed in turn. All ways to the call must
lead to one value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register, RegisterExt

from locktop.collector.symbols.unwind.x86_64.allocated_objects import AllocatedObject, call_result
from locktop.collector.symbols.unwind.x86_64.frame_offset import written_registers
from locktop.collector.symbols.unwind.x86_64.function_code import (
    CALLS,
    FROM_CALLER,
    Definition,
    FunctionSource,
)
from locktop.collector.symbols.unwind.x86_64.machine_state import (
    ARGUMENTS,
    KEPT_REGISTERS,
    Read,
    allocated_address,
    is_allocated,
)

if TYPE_CHECKING:
    from iced_x86._iced_x86_py import Register as RegisterNumber

_RESULTS = frozenset({Register.RAX, Register.RDX})
_MAX_STRAIGHT = 64  # instructions without a branch
_MAX_DEPTH = 24  # definitions that lead to each other
_WORD = 8
_MAX_OBJECT = 1 << 16  # bytes of an object at an unknown address
_MASK = (1 << 64) - 1


class StackFrame(NamedTuple):
    """A frame of a stack whose function made a call."""

    returns: int  # the return address
    registers: Mapping[RegisterNumber, int]  # those that are known there


class _Run(NamedTuple):
    """A run of a function: a frame of the stack, or a call that has ended."""

    frame: int  # the index of the frame, or of the frame that made the outermost such call
    calls: tuple[Instruction, ...] = ()  # those that have ended, outermost first


class PastValues:
    """The registers of one stack."""

    def __init__(self, code: FunctionSource, frames: Sequence[StackFrame], read: Read) -> None:
        """``frames``: those of the return addresses, innermost first."""
        self._code = code
        self._frames = frames
        self._read = read
        #: by the frame and the calls that returned the object
        self._objects: dict[tuple[int, frozenset[int]], tuple[int, AllocatedObject]] = {}

    def read(self, address: int, size: int) -> bytes:
        """Return up to so many bytes of the process, or of an object at an unknown address."""
        if not is_allocated(address):
            return self._read(address, size)
        for begin, allocated in self._objects.values():
            if 0 <= address - begin < _MAX_OBJECT:
                return allocated.read(address - begin, size)
        return b""

    def kept_register(self, index: int, register: RegisterNumber, depth: int = 0) -> int | None:
        """Return one of KEPT_REGISTERS at the return address of a frame; None: it is not known."""
        if index >= len(self._frames):
            return None
        frame = self._frames[index]
        value = frame.registers.get(register)
        if value is not None:
            return value
        call = self._call(index)
        if call is None:
            return None
        value = self._value(_Run(index), call.ip, register, depth)
        return self._object_address(index, call.ip, register) if value is None else value

    def _object_address(self, index: int, site: int, register: RegisterNumber) -> int | None:
        """Return an address for an object that a register has at the call of a frame.

        Returns:
            The real address if the frame has a copy. None if nothing of the object is known.
        """
        code = self._code.function(site)
        source = call_result(code, site, register)
        if source is None or not source.is_sure:
            return None
        key = index, source.calls
        if key not in self._objects:
            allocated = AllocatedObject(
                code,
                source.calls,
                site,
                lambda write: self._source(_Run(index), write, 0),
                is_new=all(self._code.allocates(code.instructions[ip]) for ip in source.calls),
            )
            self._objects[key] = allocated_address(len(self._objects) + 1), allocated
        begin, allocated = self._objects[key]
        if allocated.saves is not None:
            save, offset = allocated.saves
            saved = self._load(_Run(index), save, 0)
            return None if saved is None else saved - offset + source.offset & _MASK
        return begin + source.offset if allocated.is_known else None

    def entry_register(self, index: int, register: RegisterNumber) -> int | None:
        """Return a register with which the function of a frame began; None: it is not known."""
        if register == Register.RSP:
            end = self._end(index)
            return None if end is None else end - _WORD
        return self._from_caller(_Run(index), register, 0)

    def _end(self, index: int) -> int | None:
        """Return the address behind a frame."""
        if index + 1 >= len(self._frames):
            return None
        return self._frames[index + 1].registers.get(Register.RSP)

    def _call(self, index: int) -> Instruction | None:
        returns = self._frames[index].returns
        return self._code.function(returns - 1).ends.get(returns)

    def _value(self, run: _Run, ip: int, register: RegisterNumber, depth: int) -> int | None:
        """Return the value of a register before an instruction of a function."""
        if depth > _MAX_DEPTH:
            return None
        if register == Register.RSP:
            return self._stack_pointer(run, ip)
        value = self._frames[run.frame].registers.get(register) if not run.calls else None
        if value is not None and self._lasts(run.frame, ip, register):
            return value
        value = None
        for definition in self._code.function(ip).definitions(ip, register):
            defined = self._definition_value(run, definition, register, depth + 1)
            if defined is None or value not in (None, defined):
                return None
            value = defined
        return value

    def _lasts(self, index: int, ip: int, register: RegisterNumber) -> bool:
        """Return whether a register keeps its value from an instruction to the call of its frame.

        The instruction must lead to the call without a branch.
        """
        code, returns = self._code.function(ip), self._frames[index].returns
        for _ in range(_MAX_STRAIGHT):
            instruction = code.instructions.get(ip)
            if instruction is None:
                return False
            ip = instruction.next_ip
            if ip == returns:
                return register in KEPT_REGISTERS
            is_call = instruction.flow_control in CALLS
            is_straight = is_call or instruction.flow_control is FlowControl.NEXT
            if not is_straight or (not is_call and register in written_registers(instruction)):
                return False
        return False

    def _stack_pointer(self, run: _Run, ip: int) -> int | None:
        if run.calls:
            return None
        index = run.frame
        size = self._code.frame_size(ip)
        if size is None:  # the frame counts from another register: the pointer stays where it is
            return self._frames[index].registers.get(Register.RSP)
        end = self._end(index)
        return None if end is None else end - size

    def _definition_value(
        self, run: _Run, definition: Definition, register: RegisterNumber, depth: int
    ) -> int | None:
        if definition == FROM_CALLER:
            return self._from_caller(run, register, depth)
        instruction = self._code.function(definition.ip).instructions[definition.ip]
        if definition.is_saved:
            return self._load(run, instruction, depth)
        if instruction.flow_control in CALLS:
            return self._result(run, instruction, register, depth)
        handler = _DEFINITIONS.get(instruction.mnemonic)
        is_whole = RegisterExt.size(instruction.op0_register) >= 4
        if handler is None or not is_whole or instruction.op0_kind != OpKind.REGISTER:
            return None
        value = handler(self, run, instruction, depth)
        size = RegisterExt.size(instruction.op0_register)
        if value is None or (size < _WORD and is_allocated(value)):
            return None
        return value & (1 << 8 * size) - 1

    def _result(
        self, run: _Run, call: Instruction, register: RegisterNumber, depth: int
    ) -> int | None:
        """Return the value of a register behind a call that has ended."""
        target = self._code.target(call)
        if register not in _RESULTS or not target:
            return None
        value = None
        for ip in self._code.function(target).returns:
            inner = _Run(run.frame, (*run.calls, call))
            returned = self._value(inner, ip, register, depth + 1)
            if returned is None or value not in (None, returned):
                return None
            value = returned
        return value

    def _from_caller(self, run: _Run, register: RegisterNumber, depth: int) -> int | None:
        if register not in KEPT_REGISTERS and register not in ARGUMENTS:
            return None
        if run.calls:
            outer = _Run(run.frame, run.calls[:-1])
            return self._value(outer, run.calls[-1].ip, register, depth)
        index = run.frame
        if register in KEPT_REGISTERS:
            return self.kept_register(index + 1, register, depth)
        if index + 1 >= len(self._frames):
            return None
        call = self._call(index + 1)
        if call is None:
            return None
        target = self._code.target(call)
        if target and target != self._code.function(self._frames[index].returns - 1).start:
            return None  # a function that jumped here
        return self._value(_Run(index + 1), call.ip, register, depth)

    # ---- instructions ----

    def _address(self, run: _Run, instruction: Instruction, depth: int) -> int | None:
        if instruction.is_ip_rel_memory_operand:
            return instruction.ip_rel_memory_address
        if instruction.memory_segment in (Register.FS, Register.GS):
            return None
        address = instruction.memory_displacement
        for register, scale in (
            (instruction.memory_base, 1),
            (instruction.memory_index, instruction.memory_index_scale),
        ):
            if register == Register.NONE:
                continue
            value = self._value(run, instruction.ip, register, depth)
            if value is None:
                return None
            address += value * scale
        return address & _MASK

    def _load(self, run: _Run, instruction: Instruction, depth: int) -> int | None:
        address = self._address(run, instruction, depth)
        data = b"" if address is None else self.read(address, _WORD)
        return int.from_bytes(data, "little") if len(data) == _WORD else None

    def _source(self, run: _Run, instruction: Instruction, depth: int) -> int | None:
        kind = instruction.op1_kind
        if kind == OpKind.REGISTER:
            source = RegisterExt.full_register(instruction.op1_register)
            return self._value(run, instruction.ip, source, depth)
        if kind == OpKind.MEMORY:
            return self._load(run, instruction, depth)
        return instruction.immediate(1) & _MASK

    def _signed_source(self, run: _Run, instruction: Instruction, depth: int) -> int | None:
        value = self._source(run, instruction, depth)
        if value is None:
            return None
        value &= (1 << 32) - 1
        return value - (1 << 32) & _MASK if value >> 31 else value

    def _sum(self, run: _Run, instruction: Instruction, depth: int) -> int | None:
        """Arithmetic of two operands."""
        register = instruction.op0_register
        is_register = instruction.op1_kind == OpKind.REGISTER
        if instruction.mnemonic == Mnemonic.XOR:
            return 0 if is_register and instruction.op1_register == register else None
        first = self._value(run, instruction.ip, RegisterExt.full_register(register), depth)
        second = self._source(run, instruction, depth) if first is not None else None
        is_sum = instruction.mnemonic == Mnemonic.ADD
        if first is None or second is None or (is_allocated(first) and not is_sum):
            return None
        return _ARITHMETIC[instruction.mnemonic](first, second) & _MASK


_ARITHMETIC: dict[int, Callable[[int, int], int]] = {
    Mnemonic.ADD: lambda first, second: first + second,
    Mnemonic.SUB: lambda first, second: first - second,
    Mnemonic.AND: lambda first, second: first & second,
    Mnemonic.SHL: lambda first, second: first << (second & 63),
}
_DEFINITIONS = {
    Mnemonic.MOV: PastValues._source,
    Mnemonic.MOVSXD: PastValues._signed_source,
    Mnemonic.LEA: PastValues._address,
    **dict.fromkeys((*_ARITHMETIC, Mnemonic.XOR), PastValues._sum),
}
