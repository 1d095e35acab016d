"""Objects at addresses that no place has saved, as the code of a frame filled them (x86-64).

A guard on the heap is where operator new() said, and the only copy of its address may be in a
register that the kernel does not give. The code between that call and the sleep tells what it
wrote there. So the object gets an address that no process has, and its bytes are those that
reach the sleep on all ways. Nothing is said if the address went elsewhere, or if the call did not
allocate: others may write there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

from iced_x86 import Instruction, Mnemonic, OpKind, Register, RegisterExt

from locktop.collector.symbols.unwind.x86_64.function_code import (
    CALLS,
    CallResult,
    FunctionCode,
    frame_slot,
)
from locktop.collector.symbols.unwind.x86_64.machine_state import ARGUMENTS, memory_size

if TYPE_CHECKING:
    from iced_x86._iced_x86_py import Register as RegisterNumber

_MAX_CODE = 1000  # instructions from the call to the sleep
_MAX_COPIES = 8  # of an address from register to register
_MAX_WRITES = 8  # that change what an earlier one wrote
#: These read the registers that they name.
_READERS = frozenset({Mnemonic.MOV, Mnemonic.LEA, Mnemonic.TEST, Mnemonic.CMP})
_COMPARISONS = frozenset({Mnemonic.CMP, Mnemonic.TEST})
_CHANGES: dict[int, Callable[[int, int], int]] = {
    Mnemonic.ADD: lambda before, operand: before + operand,
    Mnemonic.SUB: lambda before, operand: before - operand,
    Mnemonic.OR: lambda before, operand: before | operand,
    Mnemonic.AND: lambda before, operand: before & operand,
}

#: Returns the value of the second operand of an instruction; None: it is not known.
SourceValue = Callable[[Instruction], "int | None"]


def call_result(
    code: FunctionCode, ip: int, register: RegisterNumber, depth: int = 0
) -> CallResult | None:
    """Return where the value comes from that a register has before an instruction.

    Returns:
        None if no call has returned it.
    """
    key = (ip, register, depth)
    if depth > _MAX_COPIES:
        return None
    if key not in code.call_results:
        code.call_results[key] = _result_at(code, ip, register, depth)
    return code.call_results[key]


def _result_at(
    code: FunctionCode, ip: int, register: RegisterNumber, depth: int
) -> CallResult | None:
    definitions = code.definitions(ip, register)
    results = [
        result
        for definition in definitions
        if definition.ip and not definition.is_saved
        if (result := _result_of(code, definition.ip, register, depth)) is not None
    ]
    if not results:
        return None
    offset = results[0].offset
    are_sure = all(result.is_sure and result.offset == offset for result in results)
    return CallResult(
        frozenset().union(*(result.calls for result in results)),
        offset,
        are_sure and len(results) == len(definitions),
    )


def _result_of(
    code: FunctionCode, ip: int, register: RegisterNumber, depth: int
) -> CallResult | None:
    instruction = code.instructions[ip]
    if instruction.flow_control in CALLS:
        return CallResult(frozenset({ip}), 0, is_sure=True) if register == Register.RAX else None
    if instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
        source = instruction.op1_register
        return call_result(code, ip, source, depth + 1) if RegisterExt.size(source) == 8 else None
    if instruction.mnemonic == Mnemonic.LEA and instruction.memory_base not in (
        Register.NONE, Register.RIP
    ):  # fmt: skip
        base = call_result(code, ip, instruction.memory_base, depth + 1)
        if base is None:
            return None
        is_sure = base.is_sure and instruction.memory_index == Register.NONE
        offset = _displacement(instruction)
        return CallResult(base.calls, base.offset + offset, is_sure)
    return None


def _displacement(instruction: Instruction) -> int:
    displacement = instruction.memory_displacement
    return displacement - (1 << 64) if displacement >> 63 else displacement


class AllocatedObject:
    """An object as it is when a frame makes its call."""

    def __init__(
        self,
        code: FunctionCode,
        calls: frozenset[int],
        site: int,
        source: SourceValue,
        *,
        is_new: bool,
    ) -> None:
        """Begin an object.

        Args:
            code: the function of the frame.
            calls: the addresses of the calls that may have returned the object.
            site: the address of the call that the frame is in.
            source: the values of the instructions' operands.
            is_new: The calls allocate. Other objects may be known to other code.
        """
        self._code = code
        self._calls = calls
        self._site = site
        self._source = source
        self._is_new = is_new
        self._values: dict[int, int | None] = {}  # by the address of the writing instruction

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the object; b"" unless all of them are known."""
        if not self.is_known:
            return b""
        data = self._bytes(self._site, offset, size, 0)
        return b"" if data is None else data.to_bytes(size, "little")

    @cached_property
    def saves(self) -> tuple[Instruction, int] | None:
        """An instruction that saved an address in the frame, and its offset in the object.

        None unless there is such an instruction on each way.
        """
        for ip in self._between:
            instruction = self._code.instructions[ip]
            slot = frame_slot(instruction)
            saved = self._copied_offset(instruction) if slot is not None else None
            if slot is None or saved is None:
                continue
            last = list(self._last(self._site, partial(self._writes_slot, slot)))
            if all(ip and self._copied_offset(self._code.instructions[ip]) == saved for ip in last):
                return instruction, saved
        return None

    def _copied_offset(self, instruction: Instruction) -> int | None:
        """Return the offset of the address that an instruction copies; None if it copies none."""
        if instruction.mnemonic != Mnemonic.MOV or instruction.op1_kind != OpKind.REGISTER:
            return None
        register = instruction.op1_register
        copied = call_result(self._code, instruction.ip, register)
        is_whole = RegisterExt.size(register) == 8
        is_sure = copied is not None and copied.is_sure and copied.calls <= self._calls
        return copied.offset if copied is not None and is_sure and is_whole else None

    def _writes_slot(self, slot: tuple[int, int], ip: int) -> bool:
        return frame_slot(self._code.instructions[ip]) == slot

    @cached_property
    def is_known(self) -> bool:
        """Whether the code has written to the object, and its address went nowhere else."""
        between = self._between
        if not between or not self._is_new:
            return False
        instructions = [self._code.instructions[ip] for ip in (*between, self._site)]
        return bool(self._writes) and not any(map(self._lets_escape, instructions))

    @cached_property
    def _between(self) -> frozenset[int]:
        """The instructions on all ways from the calls to the site; none if a way is not known."""
        code, seen, ways = self._code, set[int](), [self._site]
        while ways:
            before = code.predecessors.get(ways[-1], ())
            ip = ways.pop()
            if not before and code.instructions[ip].mnemonic != Mnemonic.NOP:
                if ip == code.start and ip != self._site:
                    continue
                return frozenset()
            for previous in before:
                if previous not in seen and previous not in self._calls:
                    seen.add(previous)
                    ways.append(previous)
            if len(seen) > _MAX_CODE:
                return frozenset()
        return frozenset(seen - {self._site})

    @cached_property
    def _writes(self) -> dict[int, int]:
        """The offsets in the object by the addresses of instructions that write there."""
        writes = {}
        for ip in self._between:
            instruction = self._code.instructions[ip]
            if _is_write(instruction):
                base = self._base(instruction)
                if base is not None:
                    writes[ip] = base.offset + _displacement(instruction)
        return writes

    def _base(self, instruction: Instruction) -> CallResult | None:
        """Return the origin of the address that an instruction uses, if it may be the object's."""
        base = instruction.memory_base
        if base in (Register.NONE, Register.RIP, Register.RSP):
            return None
        return self._mine(call_result(self._code, instruction.ip, base))

    def _mine(self, source: CallResult | None) -> CallResult | None:
        return source if source is not None and source.calls & self._calls else None

    def _lets_escape(self, instruction: Instruction) -> bool:
        """Return whether an instruction brings the address where the search does not see it."""
        if instruction.flow_control in CALLS:
            return any(
                self._mine(call_result(self._code, instruction.ip, register))
                for register in ARGUMENTS
            )
        for index in range(instruction.op_count):
            if instruction.op_kind(index) == OpKind.MEMORY:
                base = self._base(instruction)
                if base is not None and not (
                    base.is_sure
                    and base.calls <= self._calls
                    and instruction.memory_index == Register.NONE
                ):
                    return True
            elif instruction.op_kind(index) == OpKind.REGISTER and self._reads(instruction, index):
                register = RegisterExt.full_register(instruction.op_register(index))
                if self._mine(call_result(self._code, instruction.ip, register)):
                    return True
        return False

    def _reads(self, instruction: Instruction, index: int) -> bool:
        """Return whether an operand's register may go elsewhere than to a register."""
        if _is_zeroing(instruction):
            return False
        if instruction.mnemonic in _COMPARISONS or (not index and instruction.op_count > 1):
            return instruction.mnemonic not in _READERS
        is_copy = instruction.mnemonic == Mnemonic.MOV
        return not (is_copy and instruction.op0_kind == OpKind.REGISTER)

    # ---- what was written ----

    def _bytes(self, ip: int, offset: int, size: int, depth: int) -> int | None:
        """Return the number at an offset before an instruction; None if it is not known."""
        number = 0
        for index in range(size):
            values = {self._byte_of(write, offset + index, depth)
                      for write in self._last_writes(ip, offset + index)}  # fmt: skip
            if len(values) != 1 or None in values:
                return None
            number |= (values.pop() or 0) << 8 * index
        return number

    def _last_writes(self, ip: int, offset: int) -> Iterator[int]:
        """Yield the instructions that may have written a byte last; 0 for none."""
        return self._last(
            ip,
            lambda write: (
                write in self._writes
                and 0 <= offset - self._writes[write] < _size(self._code, write)
            ),
        )

    def _last(self, ip: int, is_sought: Callable[[int], bool]) -> Iterator[int]:
        """Yield the last such instructions on the ways to an instruction; 0 for none."""
        seen, ways = set[int](), [ip]
        while ways:
            for previous in self._code.predecessors.get(ways.pop(), ()):
                if previous in seen:
                    continue
                seen.add(previous)
                if is_sought(previous):
                    yield previous
                elif previous in self._calls:
                    yield 0
                else:
                    ways.append(previous)

    def _byte_of(self, write: int, offset: int, depth: int) -> int | None:
        if not write or depth > _MAX_WRITES:
            return None
        if write not in self._values:
            self._values[write] = self._number_by(self._code.instructions[write], depth)
        value = self._values[write]
        return None if value is None else value >> 8 * (offset - self._writes[write]) & 0xFF

    def _number_by(self, instruction: Instruction, depth: int) -> int | None:
        """Return the number that an instruction writes."""
        if instruction.mnemonic == Mnemonic.MOV:
            return self._source(instruction)
        change = _CHANGES.get(instruction.mnemonic)
        size = memory_size(instruction)
        operand = self._source(instruction) if change is not None else None
        if change is None or operand is None:
            return None
        before = self._bytes(instruction.ip, self._writes[instruction.ip], size, depth + 1)
        return None if before is None else change(before, operand) & (1 << 8 * size) - 1


def _size(code: FunctionCode, ip: int) -> int:
    return memory_size(code.instructions[ip])


def _is_zeroing(instruction: Instruction) -> bool:
    is_same = instruction.op_count == 2 and instruction.op0_register == instruction.op1_register
    return instruction.mnemonic in (Mnemonic.XOR, Mnemonic.SUB) and is_same


def _is_write(instruction: Instruction) -> bool:
    is_second = instruction.op_count > 1 and instruction.op1_kind == OpKind.MEMORY
    if instruction.mnemonic == Mnemonic.XCHG and is_second:
        return True
    is_first = instruction.op_count > 0 and instruction.op0_kind == OpKind.MEMORY
    return is_first and instruction.mnemonic not in (*_COMPARISONS, Mnemonic.PUSH)
