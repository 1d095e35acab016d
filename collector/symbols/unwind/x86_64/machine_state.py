"""The registers and the memory of a thread while its code is followed: known values, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from iced_x86 import Instruction, MemorySizeExt, OpKind, Register, RegisterExt

if TYPE_CHECKING:
    from iced_x86._iced_x86_py import Register as RegisterNumber

#: By DWARF's numbers (System V ABI for AMD64, figure 3.36).
DWARF_REGISTERS = {
    0: Register.RAX, 1: Register.RDX, 2: Register.RCX, 3: Register.RBX, 4: Register.RSI,
    5: Register.RDI, 6: Register.RBP, 7: Register.RSP, 8: Register.R8, 9: Register.R9,
    10: Register.R10, 11: Register.R11, 12: Register.R12, 13: Register.R13, 14: Register.R14,
    15: Register.R15,
}  # fmt: skip
#: The registers that a function gives back as they were.
KEPT_REGISTERS = frozenset({
    Register.RBX, Register.RBP, Register.RSP, Register.R12, Register.R13, Register.R14,
    Register.R15,
})  # fmt: skip
#: The registers of the first arguments of a function.
ARGUMENTS = frozenset({
    Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9,
})  # fmt: skip
#: Of CMPXCHG, by the bytes of the operand.
ACCUMULATORS = {1: Register.AL, 2: Register.AX, 4: Register.EAX, 8: Register.RAX}
#: Registers with the result of a function.
_RESULTS = (Register.RAX, Register.RDX, Register.ZMM0)
#: Registers of threads: their segments give no address.
_SEGMENTS = frozenset({Register.FS, Register.GS})
_HIGH = frozenset({Register.AH, Register.BH, Register.CH, Register.DH})
_IMMEDIATES = range(OpKind.IMMEDIATE8, OpKind.IMMEDIATE32TO64 + 1)
_MASK = (1 << 64) - 1
_WORD = 8
#: The distance of a thread's id from fs in glibc (``tid`` of struct pthread in nptl/descr.h).
_TID = 0x2D0

#: The first byte of the addresses of objects of which no more is known: no process has such ones.
_ALLOCATED, _ALLOCATED_SHIFT = 0x4C, 56

#: Reads up to so many bytes at an address of the process.
Read = Callable[[int, int], bytes]
#: Returns the value of a register that a function keeps, from before; None: it is not known.
PastValue = Callable[["RegisterNumber"], "int | None"]


def allocated_address(number: int) -> int:
    """Return the address that an object gets whose own is not known."""
    return _ALLOCATED << _ALLOCATED_SHIFT | number << 32


def is_allocated(value: int | None) -> bool:
    """Return whether a value is, or counts from, an address of allocated_address()."""
    return value is not None and value >> _ALLOCATED_SHIFT == _ALLOCATED


class Flags(NamedTuple):
    """The flags of the processor; None: not known."""

    zero: bool | None = None
    sign: bool | None = None
    carry: bool | None = None
    overflow: bool | None = None


class MachineState:
    """The state holds registers by their 64 to 512 bits, and the bytes that were written."""

    def __init__(
        self,
        registers: dict[RegisterNumber, int],
        memory: dict[int, int | None],
        past: PastValue | None = None,
        derivable: frozenset[RegisterNumber] = KEPT_REGISTERS,
        *,
        tid: int = 0,
        is_past: bool = False,
    ) -> None:
        """Begin with some values.

        Args:
            registers: the known ones.
            memory: by address, each byte that was written; None: it is not known.
            past: derives one of ``derivable`` that is not in ``registers``.
            derivable: registers that may be derived.
            tid: the id of the thread, as the thread knows it; 0: not known.
            is_past: The code has run before, and the memory has what it wrote. So a value that is
                not known is read from there.
        """
        self.registers = registers
        self.memory = memory
        self.flags = Flags()
        #: The low bytes of a register of which no more is known: their number and value.
        self._low: dict[RegisterNumber, tuple[int, int]] = {}
        self._past = past
        self._tid, self._is_past = tid, is_past
        self._derivable = set(derivable - registers.keys()) if past is not None else set()

    def copy(self) -> MachineState:
        """Return a state that changes by itself."""
        state = MachineState(dict(self.registers), dict(self.memory))
        state.flags, state._past, state._low = self.flags, self._past, dict(self._low)
        state._derivable, state._is_past = set(self._derivable), self._is_past
        state._tid = self._tid
        return state

    def forget_differences(self, other: MachineState) -> None:
        """Forget the results that another way to the same end has otherwise."""
        for address in self.memory.keys() | other.memory.keys():
            if self.memory.get(address) != other.memory.get(address):
                self.store(address, 1, None)
        for register in _RESULTS:
            if self.registers.get(register) != other.registers.get(register):
                self.forget(register)
            if self._low.get(register) != other._low.get(register):
                self._low.pop(register, None)

    def push_return(self) -> None:
        """Push a return address that is not known."""
        sp = self.registers.get(Register.RSP)
        if sp is not None:
            self.registers[Register.RSP] = sp - _WORD
            self.store(sp - _WORD, _WORD, None)

    def forget_after_call(self, callee: MachineState | None) -> None:
        """Drop the registers that a call may change; ``callee``: its state at the end."""
        self.registers = {
            register: value
            for register, value in self.registers.items()
            if register in KEPT_REGISTERS
        }
        self._derivable &= KEPT_REGISTERS
        self._low = {
            register: low for register, low in self._low.items() if register in KEPT_REGISTERS
        }
        if callee is not None:
            for register in _RESULTS:
                if register in callee.registers:
                    self.registers[register] = callee.registers[register]
                elif register in callee._low:
                    self._low[register] = callee._low[register]
        self.flags = Flags()

    # ---- values ----

    def register(self, register: RegisterNumber) -> int | None:
        """Return the value of a register, of its own size."""
        if register in _HIGH:
            return None
        full = RegisterExt.full_register(register)
        value = self.registers.get(full)
        if value is None and full in self._derivable and self._past is not None:
            self._derivable.discard(full)
            value = self._past(full)
            if value is not None:
                self.registers[full] = value
        size = RegisterExt.size(register)
        if value is None and full in self._low and self._low[full][0] >= size:
            value = self._low[full][1]
        if value is None or (size < _WORD and is_allocated(value)):
            return None
        return value & (1 << 8 * size) - 1

    def set_register(self, register: RegisterNumber, value: int | None) -> None:
        """Set a register, or a part of it; None: to a value that is not known."""
        full, size = RegisterExt.full_register(register), RegisterExt.size(register)
        before = self.register(full) if size < 4 else None
        self.forget(full)
        if value is None or register in _HIGH:
            return
        mask = (1 << 8 * size) - 1
        if size >= 4:
            self.registers[full] = value & mask
        elif before is not None:
            self.registers[full] = before & ~mask | value & mask
        else:
            self._low[full] = size, value & mask

    def forget(self, full_register: RegisterNumber) -> None:
        """Set a register to a value that is not known."""
        self._derivable.discard(full_register)
        self._low.pop(full_register, None)
        self.registers.pop(full_register, None)

    def address(self, instruction: Instruction) -> int | None:
        """Return the address of the operand in memory; None if it is not known."""
        if instruction.memory_segment in _SEGMENTS:
            return None
        if instruction.is_ip_rel_memory_operand:
            return instruction.ip_rel_memory_address
        address = instruction.memory_displacement
        for register, scale in (
            (instruction.memory_base, 1),
            (instruction.memory_index, instruction.memory_index_scale),
        ):
            if register == Register.NONE:
                continue
            value = self.register(register)
            if value is None:
                return None
            address += value * scale
        return address & _MASK

    def size(self, instruction: Instruction) -> int:
        """Return the bytes of the operand in memory, or of the first register."""
        for index in range(instruction.op_count):
            if instruction.op_kind(index) == OpKind.MEMORY:
                return memory_size(instruction)
        return RegisterExt.size(instruction.op0_register) or _WORD

    def operand(self, instruction: Instruction, index: int, read: Read | None = None) -> int | None:
        """Return the value of an operand; None if it is not known."""
        kind = instruction.op_kind(index)
        if kind == OpKind.REGISTER:
            return self.register(instruction.op_register(index))
        if kind in _IMMEDIATES:
            return instruction.immediate(index) & (1 << 8 * self.size(instruction)) - 1
        if kind == OpKind.MEMORY and instruction.memory_segment == Register.FS:
            is_tid = instruction.memory_displacement == _TID and not instruction.memory_base
            return self._tid if is_tid and self._tid else None
        if kind == OpKind.MEMORY and read is not None:
            address = self.address(instruction)
            if address is not None:
                return self.load(address, memory_size(instruction), read)
        return None

    def number(self, instruction: Instruction, index: int, read: Read | None = None) -> int | None:
        """Return the value of an operand that code calculates with; None if it is not known."""
        value = self.operand(instruction, index, read)
        return None if is_allocated(value) else value

    def load(self, address: int, size: int, read: Read) -> int | None:
        """Return the number at an address; None if it is not known."""
        written = {
            index: self.memory[address + index]
            for index in range(size)
            if address + index in self.memory
        }
        if None in written.values():
            return None
        data = bytearray(size) if len(written) == size else bytearray(read(address, size))
        if len(data) != size:
            return None
        for index, value in written.items():
            data[index] = value or 0
        return int.from_bytes(data, "little")

    def store(self, address: int, size: int, value: int | None) -> None:
        """Write a number; None: one that is not known."""
        if value is None and self._is_past:
            for index in range(size):
                self.memory.pop(address + index, None)
            return
        for index in range(size):
            self.memory[address + index] = None if value is None else value >> 8 * index & 0xFF

    def set_operand(self, instruction: Instruction, index: int, value: int | None) -> None:
        """Write an operand."""
        kind = instruction.op_kind(index)
        if kind == OpKind.REGISTER:
            self.set_register(instruction.op_register(index), value)
        elif kind == OpKind.MEMORY:
            address = self.address(instruction)
            if address is not None:
                self.store(address, memory_size(instruction), value)


def memory_size(instruction: Instruction) -> int:
    """Return the bytes of the operand in memory."""
    return MemorySizeExt.size(instruction.memory_size)
