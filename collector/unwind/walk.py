"""From frame to frame: each row tells where the caller's registers are.

A thread that sleeps tells two of its registers. The others become known where a frame has saved
them; until then they are not in the dictionary, and nothing is guessed of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from locktop.collector.unwind.code_map import CodeMap, Place
from locktop.collector.unwind.cut import Cut, UnknownRegister
from locktop.collector.unwind.expression import evaluate
from locktop.collector.unwind.machine import Machine
from locktop.collector.unwind.recover import FrameRegisters
from locktop.collector.unwind.rows import Cfa, How, Row, Rule
from locktop.collector.unwind.stack import Stack

#: Frames; a stack that has more is cut.
MOST_FRAMES = 2048
_LOOKED_AHEAD = 8  # frames
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Unwound:
    """A call stack."""

    addresses: tuple[int, ...]  # innermost first: where it is, then return addresses
    complete: bool  # up to where the thread began
    reason: str  # why not; "" if complete
    #: Which of the addresses are no return addresses: the instruction itself would be next.
    exact: tuple[int, ...] = (0,)
    #: Where the stack pointer is at each of them; behind a call, once it has returned.
    stack_pointers: tuple[int, ...] = ()


class Walk:
    """One stack on its way."""

    def __init__(
        self,
        machine: Machine,
        code: CodeMap,
        frames: FrameRegisters,
        stack: Stack,
        registers: dict[int, int],
    ) -> None:
        self._machine = machine
        self._code = code
        self._frames = frames
        self._stack = stack
        self._registers = registers
        self._addresses = [registers[machine.pc]]
        self._exact = [0]
        self._stack_pointers = [registers[machine.sp]]

    def unwound(self) -> Unwound:
        """Follow it as far as it is known."""
        complete, reason = False, "too many frames"
        try:
            while len(self._addresses) < MOST_FRAMES:
                if not self._step():
                    complete, reason = True, ""
                    break
        except Cut as cut:
            reason = str(cut)
        except ValueError as error:
            reason = str(error)
        return Unwound(
            tuple(self._addresses), complete, reason, tuple(self._exact),
            tuple(self._stack_pointers),
        )  # fmt: skip

    def _step(self) -> bool:
        """Go to the caller; False if there is none."""
        pc, sp = self._registers[self._machine.pc], self._registers[self._machine.sp]
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
        returns = caller[self._machine.pc]
        if not self._code.is_code(returns):
            raise Cut("the stack leads where no code is")
        if (returns, cfa) == (pc, sp):
            raise Cut("a frame that is its own caller")
        if row.is_signal:
            self._exact.append(len(self._addresses))
        self._addresses.append(returns)
        self._stack_pointers.append(caller[self._machine.sp])
        self._registers = caller
        return True

    def _recovered(
        self, place: Place, unknown: UnknownRegister, is_exact: bool
    ) -> tuple[int, dict[int, int]]:
        """CFA and caller of a frame whose register is found by its function's code: the only ones
        that are possible."""
        machine, frames, known = self._machine, self._frames, self._registers
        values = frames.candidates(
            place, known[machine.pc], known[machine.sp], unknown.register, is_return=not is_exact
        )
        fitting = []
        for value in values or ():
            try:
                cfa, caller = self._caller(place.row, {**known, unknown.register: value})
            except (Cut, ValueError):
                continue
            if frames.may_return_to(caller[machine.pc]):
                fitting.append((cfa, caller))
        if len(fitting) > 1:
            fitting = [
                (cfa, caller)
                for cfa, caller in fitting
                if frames.may_call(caller[machine.pc], place) and not self._contradicted(caller)
            ]
        if len(fitting) != 1:
            raise unknown
        return fitting[0]

    def _contradicted(self, registers: dict[int, int]) -> bool:
        """Whether a caller cannot be one: its frame, or one above, is not as large as its code
        makes it, or returns to what called nothing."""
        machine, frames = self._machine, self._frames
        for _ in range(_LOOKED_AHEAD):
            pc, sp = registers[machine.pc], registers[machine.sp]
            try:
                place = self._code.place(pc - 1)
                cfa = place.row.cfa
                if cfa is not None and not cfa.code and cfa.register != machine.sp:
                    values = frames.candidates(place, pc, sp, cfa.register, is_return=True)
                    if values is not None and registers.get(cfa.register) not in values:
                        return True
                _, registers = self._caller(place.row, registers)
            except (Cut, ValueError):
                return False  # nothing is known against it
            if place.row.is_signal:
                return False
            if not frames.may_return_to(registers[machine.pc]):
                return True
        return False

    def _caller(self, row: Row, registers: dict[int, int]) -> tuple[int, dict[int, int]]:
        """The CFA, and the caller's registers, those that are known."""
        machine = self._machine
        if row.cfa is None:
            raise Cut("call frame information without a frame")
        cfa = frame_address(row.cfa, registers, self._stack)
        if row.is_signal:  # the kernel saved them all
            caller = dict(registers)
        else:
            caller = {one: registers[one] for one in machine.kept if one in registers}
        caller[machine.sp] = cfa
        for register, rule in row.rules.items():
            if register != row.returns:
                self._apply(register, rule, registers, cfa, caller)
        address = self._value(row.returns, row.rules.get(row.returns, _KEPT), registers, cfa)
        if row.is_signed:
            address &= (1 << machine.signed_bits) - 1
        caller[machine.pc] = address
        return cfa, caller

    def _apply(
        self, register: int, rule: Rule, registers: dict[int, int], cfa: int, caller: dict[int, int]
    ) -> None:
        caller.pop(register, None)
        try:
            caller[register] = self._value(register, rule, registers, cfa)
        except Cut:
            pass  # not known: perhaps nobody asks for it

    def _value(self, register: int, rule: Rule, registers: dict[int, int], cfa: int) -> int:
        how, number, code = rule
        if how is How.AT:
            return self._stack.load(cfa + number & _MASK)
        if how is How.IS:
            return cfa + number & _MASK
        if how is How.AT_EXPRESSION:
            return self._stack.load(evaluate(code, registers, self._stack.load, (cfa,)))
        if how is How.IS_EXPRESSION:
            return evaluate(code, registers, self._stack.load, (cfa,))
        source = number if how is How.IN else register
        if how is How.UNDEFINED or source not in registers:
            raise UnknownRegister(source)
        return registers[source]


_KEPT = Rule(How.SAME)


def frame_address(cfa: Cfa, registers: dict[int, int], stack: Stack) -> int:
    """Return a frame's CFA. Raises UnknownRegister, Cut or ValueError."""
    if cfa.code:
        return evaluate(cfa.code, registers, stack.load)
    if cfa.register not in registers:
        raise UnknownRegister(cfa.register)
    return registers[cfa.register] + cfa.distance & _MASK
