"""Rows of call frame information: what its instructions say of one address (DWARF 5, 6.4)."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from locktop.collector.symbols.dwarf.abbrevs import leb, sleb
from locktop.collector.unwind.pointer_encodings import pointer

#: Of what a row can tell; the last that a processor has a number for is below.
_MAX_REGISTERS = 256
_MAX_REMEMBERED = 64


class How(Enum):
    """Where the caller's value of a register is."""

    UNDEFINED = auto()  # nowhere: of the return address, that there is no caller
    SAME = auto()
    AT = auto()  # in memory, at the CFA plus a number
    IS = auto()  # it is the CFA plus a number
    IN = auto()  # another register
    AT_EXPRESSION = auto()
    IS_EXPRESSION = auto()


class Rule(NamedTuple):
    """How to get at a register of the caller's."""

    how: How
    number: int = 0  # distance or register
    code: bytes = b""  # of an expression


class Cfa(NamedTuple):
    """How to get at the canonical frame address, where the stack pointer was before the call."""

    register: int
    distance: int
    code: bytes = b""  # of an expression, if there is one


class Common(NamedTuple):
    """What a CIE says of all functions that refer to it."""

    code_step: int
    data_step: int
    returns: int  # the register that holds the return address
    encoding: int  # of addresses
    is_signal: bool
    augmented: bool  # its functions have augmentation data, too
    instructions: bytes
    place: int  # of the instructions


class Row(NamedTuple):
    """What holds at one address. Addresses are those of the file."""

    start: int  # of the function, or the part of one, that it lies in
    end: int
    cfa: Cfa | None
    rules: dict[int, Rule]
    returns: int
    is_signal: bool  # the frame is one that the kernel made: its caller was interrupted
    is_signed: bool  # the return address has a signature in it (aarch64)


_SAME = Rule(How.SAME)
_UNDEFINED = Rule(How.UNDEFINED)
_AT_ONCE = {
    0x05: (How.AT, False),
    0x11: (How.AT, True),
    0x14: (How.IS, False),
    0x15: (How.IS, True),
}  # DW_CFA_offset_extended, _sf, val_offset, _sf: how, and whether the distance has a sign


def row(common: Common, start: int, end: int, instructions: bytes, place: int, address: int) -> Row:
    """Return the row of an address in the function from ``start`` to ``end``. ``place`` is the
    address of the function's instructions.

    Raises ValueError or IndexError where they are damaged.
    """
    run = _Run(common, start, address)
    run.all(common.instructions, common.place)
    run.initial = dict(run.rules)
    run.all(instructions, place)
    return Row(start, end, run.cfa, run.rules, common.returns, common.is_signal, run.is_signed)


class _Run:
    """The machine that the instructions are for."""

    def __init__(self, common: Common, location: int, until: int) -> None:
        self._common = common
        self._location = location
        self._until = until
        self._remembered: list[tuple[Cfa | None, dict[int, Rule], bool]] = []
        self.cfa: Cfa | None = None
        self.rules: dict[int, Rule] = {}
        self.initial: dict[int, Rule] = {}
        self.is_signed = False
        self._data = b""
        self._at = 0
        self._place = 0

    def all(self, instructions: bytes, place: int) -> None:
        """Run instructions until they are of an address beyond."""
        self._data, self._at, self._place = instructions, 0, place
        while self._at < len(instructions) and self._location <= self._until:
            code = instructions[self._at]
            self._at += 1
            kind, low = code >> 6, code & 0x3F
            if kind == 1:  # DW_CFA_advance_loc
                self._advance(low)
            elif kind == 2:  # DW_CFA_offset
                self._set(low, Rule(How.AT, self._leb() * self._common.data_step))
            elif kind == 3:  # DW_CFA_restore
                self._restore(low)
            else:
                self._extended(code)

    def _advance(self, steps: int) -> None:
        self._location += steps * self._common.code_step

    def _extended(self, code: int) -> None:
        if code == 0x00:  # DW_CFA_nop
            return
        if code in (0x02, 0x03, 0x04):  # DW_CFA_advance_loc1, 2, 4
            self._advance(self._fixed(1 << code - 2))
        elif code == 0x01:  # DW_CFA_set_loc
            encoding = self._common.encoding
            self._location, self._at = pointer(self._data, self._at, encoding, self._place)
        elif code in (0x0C, 0x0D, 0x0E, 0x0F, 0x12, 0x13):
            self._define(code)
        elif code in (0x0A, 0x0B, 0x2D):
            self._state(code)
        elif code == 0x2E:  # DW_CFA_GNU_args_size: of interest to those who jump there
            self._leb()
        else:
            self._rule(code)

    def _define(self, code: int) -> None:
        """DW_CFA_def_cfa, _register, _offset, _expression, _sf, _offset_sf."""
        if code == 0x0F:
            self.cfa = Cfa(-1, 0, self._block())
            return
        register = self._leb() if code in (0x0C, 0x0D, 0x12) else self._plain_cfa().register
        if code == 0x0D:
            distance = self._plain_cfa().distance
        elif code in (0x12, 0x13):
            distance = self._sleb() * self._common.data_step
        else:
            distance = self._leb()
        self.cfa = Cfa(register, distance)

    def _plain_cfa(self) -> Cfa:
        if self.cfa is None or self.cfa.code:
            raise ValueError("a frame address is changed that was not given")
        return self.cfa

    def _state(self, code: int) -> None:
        if code == 0x2D:  # DW_CFA_AARCH64_negate_ra_state; elsewhere register windows
            self.is_signed = not self.is_signed
        elif code == 0x0A:  # DW_CFA_remember_state
            if len(self._remembered) >= _MAX_REMEMBERED:
                raise ValueError("too many states are remembered")
            self._remembered.append((self.cfa, dict(self.rules), self.is_signed))
        else:
            self.cfa, self.rules, self.is_signed = self._remembered.pop()

    def _rule(self, code: int) -> None:
        register = self._leb()
        if code in _AT_ONCE:
            how, signed = _AT_ONCE[code]
            distance = self._sleb() if signed else self._leb()
            self._set(register, Rule(how, distance * self._common.data_step))
        elif code == 0x2F:  # DW_CFA_GNU_negative_offset_extended
            self._set(register, Rule(How.AT, -self._leb() * self._common.data_step))
        elif code == 0x06:
            self._restore(register)
        elif code == 0x07:
            self._set(register, _UNDEFINED)
        elif code == 0x08:
            self._set(register, _SAME)
        elif code == 0x09:
            self._set(register, Rule(How.IN, self._leb()))
        elif code == 0x10:
            self._set(register, Rule(How.AT_EXPRESSION, code=self._block()))
        elif code == 0x16:
            self._set(register, Rule(How.IS_EXPRESSION, code=self._block()))
        else:
            raise ValueError(f"instruction {code:#x} is not known")

    def _set(self, register: int, rule: Rule) -> None:
        if register >= _MAX_REGISTERS:
            raise ValueError(f"register {register} is not known")
        self.rules[register] = rule

    def _restore(self, register: int) -> None:
        if register in self.initial:
            self.rules[register] = self.initial[register]
        else:
            self.rules.pop(register, None)

    def _fixed(self, size: int) -> int:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise ValueError("an instruction is cut off")
        self._at += size
        return int.from_bytes(data, "little")

    def _block(self) -> bytes:
        size = self._leb()
        block = self._data[self._at : self._at + size]
        if len(block) < size:
            raise ValueError("an expression is cut off")
        self._at += size
        return block

    def _leb(self) -> int:
        value, self._at = leb(self._data, self._at)
        return value

    def _sleb(self) -> int:
        value, self._at = sleb(self._data, self._at)
        return value
