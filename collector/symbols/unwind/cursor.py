"""From frame to frame: each row of call frame information says where the caller's registers are.

The kernel gives two registers of a sleeping thread. The others become known where a frame has saved
them. Until then the dictionary lacks them, and nothing is guessed. A saved register is read when a
frame needs it. A word that is not read does not decide where the walk leads (walk_cache.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.cfi_program import CfaRule, RegisterRule, RuleKind, UnwindRow
from locktop.collector.symbols.unwind.code_map import CodeFrame, CodeMap
from locktop.collector.symbols.unwind.dwarf_expression import evaluate
from locktop.collector.symbols.unwind.stack_memory import StackCut, StackMemory, UnknownRegister
from locktop.collector.symbols.unwind.x86_64.register_recovery import FrameRegisters

#: Frames of a stack; a deeper stack is cut.
MAX_FRAMES = 2048
_CHECKED_AHEAD = 8  # frames
_MASK = (1 << 64) - 1


class Unwound(Struct, frozen=True):
    """A call stack."""

    addresses: tuple[int, ...]  # innermost first: the program counter, then return addresses
    complete: bool  # up to where the thread began
    reason: str  # why not; "" if complete
    #: Indexes of the addresses that are no return addresses: that instruction would be next.
    exact: tuple[int, ...] = (0,)
    #: By how many bytes the stack pointer is higher at each address than at the first one. For a
    #: return address, the figure is after the return.
    heights: tuple[int, ...] = (0,)


class _SavedRegister(NamedTuple):
    """A register whose value lies in memory."""

    address: int


#: The known registers, by DWARF's numbers. If at first only the program counter and the stack
#: pointer were known, all others count from the stack pointer.
_Registers = dict[int, int | _SavedRegister]


class Walk:
    """The walk along one stack."""

    def __init__(
        self,
        architecture: Architecture,
        code: CodeMap,
        frames: FrameRegisters,
        stack: StackMemory,
        registers: Mapping[int, int],
    ) -> None:
        self._architecture = architecture
        self._code = code
        self._frames = frames
        self._stack = stack
        self._pc, self._sp = registers[architecture.pc], registers[architecture.sp]
        self._registers: _Registers = dict(registers)
        self._trail: list[_Registers] = [self._registers]
        self._addresses = [self._pc]
        self._exact = [0]
        self._heights = [0]

    def unwind(self) -> Unwound:
        """Return the stack as far as it can be followed."""
        complete, reason = False, "too many frames"
        try:
            while len(self._addresses) < MAX_FRAMES:
                if not self._step():
                    complete, reason = True, ""
                    break
        except StackCut as cut:
            reason = str(cut)
        except ValueError as error:
            reason = str(error)
        return Unwound(
            tuple(self._addresses), complete, reason, tuple(self._exact),
            tuple(self._heights),
        )  # fmt: skip

    def _step(self) -> bool:
        """Go to the caller; False if there is none."""
        pc, sp = self._position(self._registers)
        is_exact = self._exact[-1] == len(self._addresses) - 1
        frame = self._code.frame_at(pc if is_exact else pc - 1)
        row = frame.row
        if row.rules.get(row.return_register, _KEPT).kind is RuleKind.UNDEFINED:
            return False
        try:
            cfa, caller = self._caller(row, self._registers)
        except UnknownRegister as unknown:
            cfa, caller = self._recover(frame, unknown, is_exact)
        if not row.is_signal and cfa < sp:
            raise StackCut("frames that lie on each other")
        returns, height = self._position(caller)
        if not self._code.is_code(returns):
            raise StackCut("the stack leads where no code is")
        if (returns, cfa) == (pc, sp):
            raise StackCut("a frame that is its own caller")
        if row.is_signal:
            self._exact.append(len(self._addresses))
        self._addresses.append(returns)
        self._heights.append(height - self._sp)
        self._registers = caller
        self._trail.append(caller)
        return True

    def frame_registers(self) -> list[dict[int, int]]:
        """Return the known registers of each frame of the stack, innermost first."""
        values = [
            {number: self._register_value(number, registers) for number in registers}
            for registers in self._trail
        ]
        return [
            {number: value for number, value in frame.items() if value is not None}
            for frame in values
        ]

    def _recover(
        self, frame: CodeFrame, unknown: UnknownRegister, is_exact: bool
    ) -> tuple[int, _Registers]:
        """Return the only CFA and caller that the function's machine code allows."""
        frames, registers = self._frames, self._registers
        pc, sp = self._position(registers)
        values = frames.candidates(frame, pc, sp, unknown.register, is_return=not is_exact)
        if values is not None and len(values) != 1:  # an aligned frame
            self._stack.pin()
        fitting = []
        for value in values or ():
            try:
                cfa, caller = self._caller(frame.row, {**registers, unknown.register: value})
            except (StackCut, ValueError):
                continue
            if frames.may_return_to(self._position(caller)[0]):
                fitting.append((cfa, caller))
        if len(fitting) > 1:
            fitting = [
                (cfa, caller)
                for cfa, caller in fitting
                if frames.may_call(self._position(caller)[0], frame)
                and not self._is_impossible(caller)
            ]
        if len(fitting) != 1:
            raise unknown
        return fitting[0]

    def _is_impossible(self, registers: _Registers) -> bool:
        """Tell whether a caller is impossible. Its frame, or one above, has not the size that its
        code gives, or returns to code that called nothing."""
        architecture, frames = self._architecture, self._frames
        for _ in range(_CHECKED_AHEAD):
            pc, sp = self._position(registers)
            try:
                frame = self._code.frame_at(pc - 1)
                cfa = frame.row.cfa
                if cfa is not None and not cfa.code and cfa.register != architecture.sp:
                    values = frames.candidates(frame, pc, sp, cfa.register, is_return=True)
                    if (
                        values is not None
                        and self._register_value(cfa.register, registers) not in values
                    ):
                        return True
                _, registers = self._caller(frame.row, registers)
            except (StackCut, ValueError):
                return False  # nothing is known against it
            if frame.row.is_signal:
                return False
            if not frames.may_return_to(self._position(registers)[0]):
                return True
        return False

    def _caller(self, row: UnwindRow, registers: _Registers) -> tuple[int, _Registers]:
        """Return the CFA and the caller's known registers."""
        architecture = self._architecture
        cfa = self._frame_address(row.cfa, registers)
        if row.is_signal:  # the kernel saved all registers
            caller = dict(registers)
        else:
            caller = {
                register: registers[register]
                for register in architecture.kept
                if register in registers
            }
        caller[architecture.sp] = cfa
        for register, rule in row.rules.items():
            if register != row.return_register:
                self._apply(register, rule, registers, cfa, caller)
        caller[architecture.sp] = self._number(architecture.sp, caller)
        address = self._returns(row, registers, cfa)
        if row.is_signed:
            address &= (1 << architecture.signed_bits) - 1
        caller[architecture.pc] = address
        return cfa, caller

    def _frame_address(self, cfa: CfaRule | None, registers: _Registers) -> int:
        if cfa is None:
            raise StackCut("call frame information without a frame")
        if cfa.code:
            return self._evaluate(cfa.code, registers)
        return self._number(cfa.register, registers) + cfa.distance & _MASK

    def _returns(self, row: UnwindRow, registers: _Registers, cfa: int) -> int:
        """Read the return address."""
        rule = row.rules.get(row.return_register, _KEPT)
        value = self._value(row.return_register, rule, registers, cfa)
        if isinstance(value, _SavedRegister):
            return self._stack.load(value.address)
        self._stack.pin()
        return value

    def _apply(
        self, register: int, rule: RegisterRule, registers: _Registers, cfa: int, caller: _Registers
    ) -> None:
        caller.pop(register, None)
        try:
            caller[register] = self._value(register, rule, registers, cfa)
        except StackCut:
            pass  # not known: perhaps no frame needs it

    def _value(
        self, register: int, rule: RegisterRule, registers: _Registers, cfa: int
    ) -> int | _SavedRegister:
        kind, number, code = rule
        if kind is RuleKind.AT_CFA:
            return _SavedRegister(cfa + number & _MASK)
        if kind is RuleKind.CFA_PLUS:
            return cfa + number & _MASK
        if kind is RuleKind.AT_EXPRESSION:
            return _SavedRegister(self._evaluate(code, registers, cfa))
        if kind is RuleKind.EXPRESSION:
            return self._evaluate(code, registers, cfa)
        source = number if kind is RuleKind.REGISTER else register
        if kind is RuleKind.UNDEFINED or source not in registers:
            raise UnknownRegister(source)
        if source == self._architecture.pc:
            self._stack.pin()
        return registers[source]

    def _evaluate(self, code: bytes, registers: _Registers, *first: int) -> int:
        """Evaluate an expression. The expression may do anything with the address of the stack."""
        self._stack.pin()
        numbers = {
            register: number
            for register in registers
            if (number := self._register_value(register, registers)) is not None
        }
        return evaluate(code, numbers, self._stack.load, first)

    def _position(self, registers: _Registers) -> tuple[int, int]:
        """Return program counter and stack pointer of a frame: both are always known."""
        pc, sp = registers[self._architecture.pc], registers[self._architecture.sp]
        assert isinstance(pc, int)
        assert isinstance(sp, int)
        return pc, sp

    def _number(self, register: int, registers: _Registers) -> int:
        """Return a number that counts from the stack pointer."""
        number = self._register_value(register, registers)
        if number is None:
            raise UnknownRegister(register)
        if register == self._architecture.pc:
            self._stack.pin()
        return number

    def _register_value(self, register: int, registers: _Registers) -> int | None:
        value = registers.get(register)
        if not isinstance(value, _SavedRegister):
            return value
        try:
            return self._stack.frame(value.address)
        except StackCut:
            return None


_KEPT = RegisterRule(RuleKind.SAME)
