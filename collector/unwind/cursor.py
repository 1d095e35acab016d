"""From frame to frame: each row tells where the caller's registers are.

A thread that sleeps tells two of its registers. The others become known where a frame has saved
them; until then they are not in the dictionary, and nothing is guessed of them. One that was saved
is read when it is needed: what is not read does not matter to where the walk leads (walks.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from locktop.collector.unwind.arch import Machine
from locktop.collector.unwind.cfi_program import Cfa, How, Row, Rule
from locktop.collector.unwind.code_map import CodeMap, Place
from locktop.collector.unwind.dwarf_expression import evaluate
from locktop.collector.unwind.stack_memory import Stack
from locktop.collector.unwind.truncation import Cut, UnknownRegister
from locktop.collector.unwind.x86_64.register_recovery import FrameRegisters

#: Frames; a stack that has more is cut.
MAX_FRAMES = 2048
_SCANNED_AHEAD = 8  # frames
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Unwound:
    """A call stack."""

    addresses: tuple[int, ...]  # innermost first: where it is, then return addresses
    complete: bool  # up to where the thread began
    reason: str  # why not; "" if complete
    #: Which of the addresses are no return addresses: the instruction itself would be next.
    exact: tuple[int, ...] = (0,)
    #: By how many bytes the stack pointer is higher at each of them than at the first; behind a
    #: call, once it has returned.
    heights: tuple[int, ...] = (0,)


class _Saved(NamedTuple):
    """A register's value that lies in memory."""

    address: int


#: Those that are known, by DWARF's numbers. All numbers but the program counter count from the
#: stack pointer, where no more than these two were known at first.
_Registers = dict[int, int | _Saved]


class Walk:
    """One stack on its way."""

    def __init__(
        self,
        machine: Machine,
        code: CodeMap,
        frames: FrameRegisters,
        stack: Stack,
        registers: Mapping[int, int],
    ) -> None:
        self._machine = machine
        self._code = code
        self._frames = frames
        self._stack = stack
        self._pc, self._sp = registers[machine.pc], registers[machine.sp]
        self._registers: _Registers = dict(registers)
        self._addresses = [self._pc]
        self._exact = [0]
        self._heights = [0]

    def unwound(self) -> Unwound:
        """Follow it as far as it is known."""
        complete, reason = False, "too many frames"
        try:
            while len(self._addresses) < MAX_FRAMES:
                if not self._step():
                    complete, reason = True, ""
                    break
        except Cut as cut:
            reason = str(cut)
        except ValueError as error:
            reason = str(error)
        return Unwound(
            tuple(self._addresses), complete, reason, tuple(self._exact),
            tuple(self._heights),
        )  # fmt: skip

    def _step(self) -> bool:
        """Go to the caller; False if there is none."""
        pc, sp = self._place(self._registers)
        is_exact = self._exact[-1] == len(self._addresses) - 1
        place = self._code.place(pc if is_exact else pc - 1)
        row = place.row
        if row.rules.get(row.returns, _KEPT).how is How.UNDEFINED:
            return False
        try:
            cfa, caller = self._caller(row, self._registers)
        except UnknownRegister as unknown:
            cfa, caller = self._recovered(place, unknown, is_exact)
        if not row.is_signal and cfa < sp:
            raise Cut("frames that lie on each other")
        returns, height = self._place(caller)
        if not self._code.is_code(returns):
            raise Cut("the stack leads where no code is")
        if (returns, cfa) == (pc, sp):
            raise Cut("a frame that is its own caller")
        if row.is_signal:
            self._exact.append(len(self._addresses))
        self._addresses.append(returns)
        self._heights.append(height - self._sp)
        self._registers = caller
        return True

    def _recovered(
        self, place: Place, unknown: UnknownRegister, is_exact: bool
    ) -> tuple[int, _Registers]:
        """CFA and caller of a frame whose register is found by its function's code: the only ones
        that are possible."""
        frames, known = self._frames, self._registers
        pc, sp = self._place(known)
        values = frames.candidates(place, pc, sp, unknown.register, is_return=not is_exact)
        if values is not None and len(values) != 1:  # a frame that is aligned
            self._stack.pin()
        fitting = []
        for value in values or ():
            try:
                cfa, caller = self._caller(place.row, {**known, unknown.register: value})
            except (Cut, ValueError):
                continue
            if frames.may_return_to(self._place(caller)[0]):
                fitting.append((cfa, caller))
        if len(fitting) > 1:
            fitting = [
                (cfa, caller)
                for cfa, caller in fitting
                if frames.may_call(self._place(caller)[0], place) and not self._contradicted(caller)
            ]
        if len(fitting) != 1:
            raise unknown
        return fitting[0]

    def _contradicted(self, registers: _Registers) -> bool:
        """Whether a caller cannot be one: its frame, or one above, is not as large as its code
        makes it, or returns to what called nothing."""
        machine, frames = self._machine, self._frames
        for _ in range(_SCANNED_AHEAD):
            pc, sp = self._place(registers)
            try:
                place = self._code.place(pc - 1)
                cfa = place.row.cfa
                if cfa is not None and not cfa.code and cfa.register != machine.sp:
                    values = frames.candidates(place, pc, sp, cfa.register, is_return=True)
                    if values is not None and self._known(cfa.register, registers) not in values:
                        return True
                _, registers = self._caller(place.row, registers)
            except (Cut, ValueError):
                return False  # nothing is known against it
            if place.row.is_signal:
                return False
            if not frames.may_return_to(self._place(registers)[0]):
                return True
        return False

    def _caller(self, row: Row, registers: _Registers) -> tuple[int, _Registers]:
        """The CFA, and the caller's registers, those that are known."""
        machine = self._machine
        cfa = self._frame_address(row.cfa, registers)
        if row.is_signal:  # the kernel saved them all
            caller = dict(registers)
        else:
            caller = {one: registers[one] for one in machine.kept if one in registers}
        caller[machine.sp] = cfa
        for register, rule in row.rules.items():
            if register != row.returns:
                self._apply(register, rule, registers, cfa, caller)
        caller[machine.sp] = self._number(machine.sp, caller)
        address = self._returns(row, registers, cfa)
        if row.is_signed:
            address &= (1 << machine.signed_bits) - 1
        caller[machine.pc] = address
        return cfa, caller

    def _frame_address(self, cfa: Cfa | None, registers: _Registers) -> int:
        if cfa is None:
            raise Cut("call frame information without a frame")
        if cfa.code:
            return self._evaluated(cfa.code, registers)
        return self._number(cfa.register, registers) + cfa.distance & _MASK

    def _returns(self, row: Row, registers: _Registers, cfa: int) -> int:
        """The return address."""
        rule = row.rules.get(row.returns, _KEPT)
        value = self._value(row.returns, rule, registers, cfa)
        if isinstance(value, _Saved):
            return self._stack.load(value.address)
        self._stack.pin()
        return value

    def _apply(
        self, register: int, rule: Rule, registers: _Registers, cfa: int, caller: _Registers
    ) -> None:
        caller.pop(register, None)
        try:
            caller[register] = self._value(register, rule, registers, cfa)
        except Cut:
            pass  # not known: perhaps nobody asks for it

    def _value(self, register: int, rule: Rule, registers: _Registers, cfa: int) -> int | _Saved:
        how, number, code = rule
        if how is How.AT:
            return _Saved(cfa + number & _MASK)
        if how is How.IS:
            return cfa + number & _MASK
        if how is How.AT_EXPRESSION:
            return _Saved(self._evaluated(code, registers, cfa))
        if how is How.IS_EXPRESSION:
            return self._evaluated(code, registers, cfa)
        source = number if how is How.IN else register
        if how is How.UNDEFINED or source not in registers:
            raise UnknownRegister(source)
        if source == self._machine.pc:
            self._stack.pin()
        return registers[source]

    def _evaluated(self, code: bytes, registers: _Registers, *first: int) -> int:
        """What an expression results in. It may do anything with what it is told."""
        self._stack.pin()
        known = {one: self._known(one, registers) for one in registers}
        numbers = {one: number for one, number in known.items() if number is not None}
        return evaluate(code, numbers, self._stack.load, first)

    def _place(self, registers: _Registers) -> tuple[int, int]:
        """Where a frame is, and its stack pointer: these two are always known."""
        pc, sp = registers[self._machine.pc], registers[self._machine.sp]
        assert isinstance(pc, int)
        assert isinstance(sp, int)
        return pc, sp

    def _number(self, register: int, registers: _Registers) -> int:
        """What counts from the stack pointer."""
        number = self._known(register, registers)
        if number is None:
            raise UnknownRegister(register)
        if register == self._machine.pc:
            self._stack.pin()
        return number

    def _known(self, register: int, registers: _Registers) -> int | None:
        value = registers.get(register)
        if not isinstance(value, _Saved):
            return value
        try:
            return self._stack.frame(value.address)
        except Cut:
            return None


_KEPT = Rule(How.SAME)
