"""Rows of call frame information: what the instructions give for one address (DWARF 5, 6.4).

pyelftools parses the instructions. The table of rows of pyelftools is not used
(docs/internals/adr/0002). The table takes no DW_CFA_GNU_args_size, which libc has, and leaves out
DW_CFA_AARCH64_negate_ra_state. The table also scales DW_CFA_def_cfa_sf by the wrong factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, NamedTuple

from elftools.dwarf.callframe import CallFrameInstruction
from elftools.dwarf.constants import DW_CFA

from locktop.collector.symbols.unwind.fde import CommonEntry, FunctionEntry
from locktop.collector.symbols.unwind.pointer_encodings import ABSOLUTE

#: Registers that a row may have rules for; the numbers of a processor's registers are lower.
_MAX_REGISTERS = 256
_MAX_REMEMBERED = 64


class RuleKind(Enum):
    """Where the caller's value of a register is."""

    UNDEFINED = auto()  # nowhere; an undefined return address says that there is no caller
    SAME = auto()  # in the register
    AT_CFA = auto()  # in memory, at the CFA plus a number
    CFA_PLUS = auto()  # the value is the CFA plus a number
    REGISTER = auto()  # in another register
    AT_EXPRESSION = auto()  # in memory, at the result of an expression
    EXPRESSION = auto()  # the value is the result of an expression


class RegisterRule(NamedTuple):
    """How to get the caller's value of a register."""

    kind: RuleKind
    number: int = 0  # a distance in bytes, or a register
    code: bytes = b""  # of an expression


class CfaRule(NamedTuple):
    """How to get the canonical frame address: the stack pointer before the call."""

    register: int
    distance: int
    code: bytes = b""  # of an expression, if there is one


class UnwindRow(NamedTuple):
    """The rule for the CFA and those for the registers at one address. Addresses are those of the
    file."""

    start: int  # of the function, or of the part of a function, around the address
    end: int
    cfa: CfaRule | None
    rules: dict[int, RegisterRule]
    return_register: int
    is_signal: bool  # the kernel made the frame: its caller was interrupted
    is_signed: bool  # the return address contains a signature (aarch64)


def row(function: FunctionEntry, address: int) -> UnwindRow:
    """Return the row of an address of a function.

    Raises:
        ValueError: The instructions are damaged.
    """
    common = function.common
    program = _Program(common, function.start, address)
    try:
        program.run(common.instructions)
        program.initial = dict(program.rules)
        program.run(function.instructions)
    except LookupError as error:
        raise ValueError(f"damaged instructions: {error}") from None
    return UnwindRow(
        function.start,
        function.end,
        program.cfa,
        program.rules,
        common.return_register,
        common.is_signal,
        program.is_signed,
    )


_SAME = RegisterRule(RuleKind.SAME)
_UNDEFINED = RegisterRule(RuleKind.UNDEFINED)
_ADVANCES = frozenset({
    DW_CFA.advance_loc, DW_CFA.advance_loc1, DW_CFA.advance_loc2, DW_CFA.advance_loc4,
})  # fmt: skip
_CFA_DEFINITIONS = frozenset({
    DW_CFA.def_cfa, DW_CFA.def_cfa_sf, DW_CFA.def_cfa_register, DW_CFA.def_cfa_offset,
    DW_CFA.def_cfa_offset_sf, DW_CFA.def_cfa_expression,
})  # fmt: skip
#: Rules whose number is multiplied with the CIE's factor.
_SCALED = {
    DW_CFA.offset: RuleKind.AT_CFA,
    DW_CFA.offset_extended: RuleKind.AT_CFA,
    DW_CFA.offset_extended_sf: RuleKind.AT_CFA,
    DW_CFA.val_offset: RuleKind.CFA_PLUS,
    DW_CFA.val_offset_sf: RuleKind.CFA_PLUS,
}
_EXPRESSIONS = {
    DW_CFA.expression: RuleKind.AT_EXPRESSION,
    DW_CFA.val_expression: RuleKind.EXPRESSION,
}
_WITHOUT_EFFECT = frozenset({DW_CFA.nop, DW_CFA.GNU_args_size})  # the second is for exceptions


class _SavedState(NamedTuple):
    cfa: CfaRule | None
    rules: dict[int, RegisterRule]
    is_signed: bool


class _Program:
    """Runs instructions until they are of a later address."""

    def __init__(self, common: CommonEntry, location: int, until: int) -> None:
        self._common = common
        self._location = location
        self._until = until
        self._remembered: list[_SavedState] = []
        self.cfa: CfaRule | None = None
        self.rules: dict[int, RegisterRule] = {}
        self.initial: dict[int, RegisterRule] = {}
        self.is_signed = False

    def run(self, instructions: Iterable[CallFrameInstruction]) -> None:
        """Run instructions; the state is then that of the address, or of the last one before."""
        for instruction in instructions:
            if self._location > self._until:
                return
            self._execute(instruction.opcode, instruction.args)

    def _execute(self, code: DW_CFA, operands: list[Any]) -> None:
        if code in _ADVANCES:
            self._location += operands[0] * self._common.code_factor
        elif code in _CFA_DEFINITIONS:
            self.cfa = self._cfa_rule(code, operands)
        elif code in _SCALED:
            register, factor = operands
            rule = RegisterRule(_SCALED[code], factor * self._common.data_factor)
            self._set(register, rule)
        elif code in (DW_CFA.restore, DW_CFA.restore_extended):
            self._restore(operands[0])
        elif code is DW_CFA.remember_state:
            self._remember()
        elif code is DW_CFA.restore_state:
            self.cfa, self.rules, self.is_signed = self._remembered.pop()
        elif code is DW_CFA.AARCH64_negate_ra_state:
            self.is_signed = not self.is_signed
        elif code is DW_CFA.set_loc and self._common.encoding == ABSOLUTE:
            self._location = operands[0]
        elif code not in _WITHOUT_EFFECT:
            self._set(operands[0], _other_rule(code, operands))

    def _cfa_rule(self, code: DW_CFA, operands: list[Any]) -> CfaRule:
        if code is DW_CFA.def_cfa_expression:
            return CfaRule(-1, 0, bytes(operands[0]))
        scale = 1
        if code in (DW_CFA.def_cfa_sf, DW_CFA.def_cfa_offset_sf):
            scale = self._common.data_factor
        if code in (DW_CFA.def_cfa, DW_CFA.def_cfa_sf):
            return CfaRule(operands[0], operands[1] * scale)
        if self.cfa is None or self.cfa.code:
            raise ValueError("a frame address is changed that was not given")
        if code is DW_CFA.def_cfa_register:
            return CfaRule(operands[0], self.cfa.distance)
        return CfaRule(self.cfa.register, operands[0] * scale)

    def _remember(self) -> None:
        if len(self._remembered) >= _MAX_REMEMBERED:
            raise ValueError("too many states are remembered")
        self._remembered.append(_SavedState(self.cfa, dict(self.rules), self.is_signed))

    def _set(self, register: int, rule: RegisterRule) -> None:
        if register >= _MAX_REGISTERS:
            raise ValueError(f"register {register} is not known")
        self.rules[register] = rule

    def _restore(self, register: int) -> None:
        if register in self.initial:
            self.rules[register] = self.initial[register]
        else:
            self.rules.pop(register, None)


def _other_rule(code: DW_CFA, operands: list[Any]) -> RegisterRule:
    if code is DW_CFA.undefined:
        return _UNDEFINED
    if code is DW_CFA.same_value:
        return _SAME
    if code is DW_CFA.register:
        return RegisterRule(RuleKind.REGISTER, operands[1])
    if code in _EXPRESSIONS:
        return RegisterRule(_EXPRESSIONS[code], code=bytes(operands[1]))
    raise ValueError(f"instruction {code.name} is not known")
