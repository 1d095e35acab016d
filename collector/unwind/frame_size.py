"""How far a function's frame register is from its stack pointer, by its machine code (x86-64).

The kernel tells a sleeping thread's stack pointer and nothing of rbp. Where call frame information
counts from rbp, the code between the function's first instruction and the call tells how much was
pushed and reserved since rbp was set: on all ways that lead there, or it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Bytes of a function; an instruction takes some 4 us.
MOST_CODE = 64 << 10
#: Bytes that a pointer to the stack is aligned to at most.
_MOST_ALIGNED = 128

#: DWARF's numbers of the registers that compilers count from.
NAMES = {3: "rbx", 6: "rbp", 10: "r10", 12: "r12", 13: "r13", 14: "r14", 15: "r15"}


class Distance(NamedTuple):
    """The frame register minus the stack pointer: ``size``, and if ``aligned`` is not 0 up to so
    many bytes more: since the stack pointer was a multiple of it, ``after`` bytes were taken."""

    size: int
    aligned: int = 0
    after: int = 0


class _Unset:
    """The frame register is the caller's."""


class _Mixed:
    """It may be one or the other."""


_UNSET, _MIXED = _Unset(), _Mixed()
_State = Distance | _Unset | _Mixed
_Instruction = tuple[int, int, str, str]  # address, size, mnemonic, operands

_IMMEDIATE = re.compile(r"^rsp, (?:\[rsp ([+-]) )?(-?(?:0x[0-9a-f]+|\d+))\]?$")
_FROM_RSP = re.compile(r"^\[rsp(?: ([+-]) (0x[0-9a-f]+|\d+))?\]$")
_STACK_POINTERS = frozenset({"rsp", "esp", "sp", "spl"})
_PUSHES = {"push": 8, "pushfq": 8, "pop": -8, "popfq": -8}
_NARROW = frozenset({"ax", "bx", "cx", "dx", "si", "di", "bp"})
_ENDS = frozenset({"ret", "jmp", "ud2", "hlt"})
#: What names a register first and leaves it as it is.
_READS = frozenset({"cmp", "test", "push", "call", "jmp", "bt", "nop", "mul", "div", "idiv"})


def distance(
    code: bytes, start: int, address: int, register: int, *, is_return: bool
) -> Distance | None:
    """Return how far ``register`` is from the stack pointer before the instruction at ``address``,
    or where a call returns to it; None where the code does not tell. ``code`` is the function's,
    which begins at ``start``."""
    name = NAMES.get(register)
    if name is None or len(code) > MOST_CODE:
        return None
    flow = _Flow(_disassembled(code, start), name)
    flow.follow_until(start, address)
    return flow.returned(address) if is_return else flow.before(address)


def _disassembled(code: bytes, start: int) -> Iterator[_Instruction]:
    import capstone  # takes 50 ms, and most stacks need none of it

    found: Iterator[_Instruction] = capstone.Cs(
        capstone.CS_ARCH_X86, capstone.CS_MODE_64
    ).disasm_lite(code, start)
    return found


def jumps_out(code: bytes, start: int) -> bool:
    """Tell whether a function may go on as another one, by a jump instead of a call."""
    if len(code) > MOST_CODE:
        return True
    for _, _, mnemonic, operands in _disassembled(code, start):
        if mnemonic.rpartition(" ")[2].startswith("j"):
            inside = operands.startswith("0x") and 0 <= int(operands, 16) - start < len(code)
            if not inside:
                return True
    return False


class _Flow:
    """Follows all ways through a function."""

    def __init__(self, instructions: Iterable[_Instruction], name: str) -> None:
        self._name = name
        self._by_address = {one[0]: one for one in instructions}
        self._before: dict[int, _State] = {}
        self._returned: dict[int, _State] = {}  # by the address behind a call
        self._outside: set[_State] = set()  # at calls, and at jumps to where a table tells

    def follow_until(self, start: int, wanted: int) -> None:
        """Go all ways from ``start``, and further until ``wanted`` was come by."""
        self._follow(start, _UNSET)
        for address in self._by_address:
            if wanted in self._returned or wanted in self._before:
                return
            if address not in self._before:
                # Behind a table of jumps, or a handler of exceptions: no instruction seen leads
                # there. What holds at all that may lead there holds there.
                if len(self._outside) != 1:
                    return
                self._follow(address, *self._outside)

    def before(self, address: int) -> Distance | None:
        """Return what holds before an instruction."""
        found = self._before.get(address)
        return found if isinstance(found, Distance) else None

    def returned(self, address: int) -> Distance | None:
        """Return what holds where the call before an address returns."""
        found = self._returned.get(address)
        return found if isinstance(found, Distance) else None

    def _follow(self, address: int, state: _State) -> None:
        ways = [(address, state)]
        while ways:
            address, state = ways.pop()
            known = self._before.get(address)
            if known is not None:
                if known == state or known is _MIXED:
                    continue
                state = _MIXED
            instruction = self._by_address.get(address)
            if instruction is not None:  # else another function's
                self._before[address] = state
                ways.extend(self._next(instruction, state))

    def _next(self, instruction: _Instruction, state: _State) -> Iterator[tuple[int, _State]]:
        address, size, mnemonic, operands = instruction
        after = address + size
        operation = mnemonic.rpartition(" ")[2]  # without what compilers put before it
        if operation == "call":
            known = self._returned.setdefault(after, state)
            self._returned[after] = state if known == state else _MIXED
            self._leave(state)
        is_jump = operation.startswith("j")
        if is_jump and operands.startswith("0x"):
            yield int(operands, 16), state
        elif is_jump:
            self._leave(state)
        if operation not in _ENDS:
            probed = self._probed(after, operands) if operation == "lea" else None
            yield (
                probed[0] if probed else after,
                (
                    _moved(state, probed[1])
                    if probed
                    else _effect(mnemonic, operands, state, self._name)
                ),
            )

    def _probed(self, address: int, operands: str) -> tuple[int, int] | None:
        """Where a loop ends that touches each page of a large frame, and how much it takes: it
        begins with `lea r11, [rsp - SIZE]` (-fstack-clash-protection)."""
        register, _, size = operands.partition(", [rsp - ")
        loop: list[_Instruction] = []
        while len(loop) < 4 and (one := self._by_address.get(address)) is not None:
            loop.append(one)
            address += one[1]
        told = [f"{mnemonic} {rest}" for _, _, mnemonic, rest in loop]
        if not size or len(told) < 4 or register == self._name:
            return None
        again = f"jne {loop[0][0]:#x}"
        is_loop = told[0] == "sub rsp, 0x1000" and told[2:] == [f"cmp rsp, {register}", again]
        return (address, int(size.rstrip("]"), 0)) if is_loop else None

    def _leave(self, state: _State) -> None:
        if state is not _UNSET:  # a handler is of what was called later
            self._outside.add(state)


def _effect(mnemonic: str, operands: str, state: _State, name: str) -> _State:
    """What holds after an instruction."""
    first, _, rest = operands.partition(", ")
    if mnemonic == "mov" and operands == f"{name}, rsp":
        return Distance(0)
    if mnemonic == "lea" and first == name and (match := _FROM_RSP.match(rest)):
        return Distance(_number(match[1], match[2] or "0"))
    if mnemonic in ("leave", "enter"):
        return _UNSET if (mnemonic, name) == ("leave", "rbp") else _MIXED
    if mnemonic in _PUSHES:
        if first in _STACK_POINTERS or _is_narrow(first):
            return _MIXED
        state = _moved(state, _PUSHES[mnemonic])
    elif first in _STACK_POINTERS and mnemonic not in _READS:
        state = _stack_pointer(mnemonic, operands, state, name)
    if mnemonic == "pop" and first == name:
        return _UNSET  # the caller's again
    return _MIXED if _writes(mnemonic, first, rest, name) else state


def _stack_pointer(mnemonic: str, operands: str, state: _State, name: str) -> _State:
    match = _IMMEDIATE.match(operands)
    if mnemonic in ("sub", "add") and match and match[1] is None:
        value = int(match[2], 0)
        return _moved(state, value if mnemonic == "sub" else -value)
    if mnemonic == "lea" and match and match[1]:
        return _moved(state, -_number(match[1], match[2]))
    if mnemonic == "mov" and operands == f"rsp, {name}" and isinstance(state, Distance):
        return Distance(0)
    if mnemonic == "lea" and isinstance(state, Distance):
        behind = re.match(rf"^rsp, \[{name} - (0x[0-9a-f]+|\d+)\]$", operands)
        return Distance(int(behind[1], 0)) if behind else _MIXED
    if mnemonic == "and" and match and isinstance(state, Distance) and not state.aligned:
        aligned = (1 << 64) - int(match[2], 0)
        if 8 < aligned <= _MOST_ALIGNED and not aligned & (aligned - 1):
            return Distance(state.size, aligned)
    return state if isinstance(state, _Unset) else _MIXED


def _moved(state: _State, size: int) -> _State:
    if not isinstance(state, Distance):
        return state
    return Distance(state.size + size, state.aligned, state.after + size if state.aligned else 0)


def _number(sign: str | None, digits: str) -> int:
    return -int(digits, 0) if sign == "-" else int(digits, 0)


def _is_narrow(operand: str) -> bool:
    """Whether two bytes are pushed: of memory, or a part of a register."""
    return operand.startswith("word") or operand in _NARROW or operand.endswith("w")


def _writes(mnemonic: str, first: str, rest: str, name: str) -> bool:
    """Whether an instruction may change the frame register, by any of its names."""
    if mnemonic in _READS:
        return False
    if mnemonic == "cpuid":
        return name == "rbx"
    parts = {name, f"{name}d", f"{name}w", f"{name}b", f"e{name[1:]}", name[1:], f"{name[1]}l"}
    return first in parts or f"{name[1:]}l" == first or (mnemonic[:1] == "x" and rest in parts)
