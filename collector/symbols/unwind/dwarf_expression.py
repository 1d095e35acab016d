"""DWARF expressions as call frame information has them (DWARF 5, 2.5): a stack machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from locktop.collector.symbols.dwarf.abbrevs import leb, sleb
from locktop.collector.symbols.unwind.stack_memory import UnknownRegister

#: Operations of one evaluation; a loop ends here.
_MAX_STEPS = 1000
_MAX_DEPTH = 64
_MASK = (1 << 64) - 1

_DEREF, _DEREF_SIZE = 0x06, 0x94
_ADDR, _CONSTANTS = 0x03, range(0x08, 0x10)
_CONSTU, _CONSTS = 0x10, 0x11
_DUP, _DROP, _OVER, _PICK, _SWAP, _ROT = 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
_PLUS_UCONST, _SKIP, _BRA, _NOP = 0x23, 0x2F, 0x28, 0x96
_LITERALS, _BASES, _BASE_X = range(0x30, 0x50), range(0x70, 0x90), 0x92


def _signed_number(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _divide(left: int, right: int) -> int:
    left, right = _signed_number(left), _signed_number(right)
    quotient = abs(left) // abs(right)  # towards zero
    return quotient if (left < 0) == (right < 0) else -quotient


_UNARY: dict[int, Callable[[int], int]] = {
    0x19: lambda value: abs(_signed_number(value)),
    0x1F: lambda value: -value,
    0x20: lambda value: ~value,
}
_BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: lambda left, right: left & right,
    0x1B: _divide,
    0x1C: lambda left, right: left - right,
    0x1D: lambda left, right: left % right,
    0x1E: lambda left, right: left * right,
    0x21: lambda left, right: left | right,
    0x22: lambda left, right: left + right,
    0x24: lambda left, right: left << right if right < 64 else 0,
    0x25: lambda left, right: left >> right if right < 64 else 0,
    0x26: lambda left, right: _signed_number(left) >> min(right, 63),
    0x27: lambda left, right: left ^ right,
    0x29: lambda left, right: left == right,
    0x2A: lambda left, right: _signed_number(left) >= _signed_number(right),
    0x2B: lambda left, right: _signed_number(left) > _signed_number(right),
    0x2C: lambda left, right: _signed_number(left) <= _signed_number(right),
    0x2D: lambda left, right: _signed_number(left) < _signed_number(right),
    0x2E: lambda left, right: left != right,
}


def evaluate(
    code: bytes,
    registers: Mapping[int, int],
    load: Callable[[int, int], int],
    first: Sequence[int] = (),
) -> int:
    """Return the top of the stack after an expression.

    Args:
        code: The expression.
        registers: The known registers, by DWARF's numbers.
        load: Returns the number at (address, size).
        first: What is on the stack at the beginning.

    Raises:
        UnknownRegister: The expression uses a register that is not known.
        ValueError: The expression is damaged. Exceptions of ``load`` pass through.
    """
    try:
        return _StackMachine(code, registers, load, first).result()
    except (IndexError, ZeroDivisionError) as error:
        raise ValueError(f"a damaged expression: {error}") from None


class _StackMachine:
    def __init__(
        self,
        code: bytes,
        registers: Mapping[int, int],
        load: Callable[[int, int], int],
        first: Sequence[int],
    ) -> None:
        self._code = code
        self._registers = registers
        self._load = load
        self._stack = list(first)
        self._offset = 0

    def result(self) -> int:
        for _ in range(_MAX_STEPS):
            if not 0 <= self._offset < len(self._code):
                return self._stack[-1]
            operation = self._code[self._offset]
            self._offset += 1
            self._step(operation)
            if len(self._stack) > _MAX_DEPTH:
                break
        raise ValueError("an expression does not end")

    def _step(self, operation: int) -> None:
        stack = self._stack
        if operation in _BINARY:
            right, left = stack.pop(), stack.pop()
            self._push(int(_BINARY[operation](left, right)))
        elif operation in _UNARY:
            self._push(_UNARY[operation](stack.pop()))
        elif operation in _LITERALS:
            self._push(operation - _LITERALS.start)
        elif operation in _BASES:
            self._push(self._register(operation - _BASES.start) + self._sleb())
        elif operation == _BASE_X:
            self._push(self._register(self._leb()) + self._sleb())
        elif operation in (_DEREF, _DEREF_SIZE):
            size = 8 if operation == _DEREF else self._fixed_number(1)
            if not 0 < size <= 8:
                raise ValueError(f"{size} bytes are no number")
            self._push(self._load(stack.pop(), size))
        elif operation == _PLUS_UCONST:
            self._push(stack.pop() + self._leb())
        elif operation in (_SKIP, _BRA):
            distance = self._fixed_number(2, signed=True)
            if operation == _SKIP or stack.pop():
                self._offset += distance
        elif operation != _NOP and not self._constant(operation):
            self._rearrange(operation)

    def _constant(self, operation: int) -> bool:
        if operation in _CONSTANTS:  # of 1, 2, 4 and 8 bytes, each unsigned and signed
            kind = operation - _CONSTANTS.start
            self._push(self._fixed_number(1 << kind // 2, signed=bool(kind % 2)))
        elif operation == _ADDR:
            self._push(self._fixed_number(8))
        elif operation == _CONSTU:
            self._push(self._leb())
        elif operation == _CONSTS:
            self._push(self._sleb())
        else:
            return False
        return True

    def _rearrange(self, operation: int) -> None:
        stack = self._stack
        if operation == _DUP:
            stack.append(stack[-1])
        elif operation == _DROP:
            stack.pop()
        elif operation in (_OVER, _PICK):
            stack.append(stack[-2] if operation == _OVER else stack[-1 - self._fixed_number(1)])
        elif operation == _SWAP:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif operation == _ROT:
            stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
        else:
            raise ValueError(f"operation {operation:#x} is not known")

    def _push(self, value: int) -> None:
        self._stack.append(value & _MASK)

    def _register(self, number: int) -> int:
        if number not in self._registers:
            raise UnknownRegister(number)
        return self._registers[number]

    def _fixed_number(self, size: int, *, signed: bool = False) -> int:
        data = self._code[self._offset : self._offset + size]
        if len(data) < size:
            raise IndexError("cut off")
        self._offset += size
        return int.from_bytes(data, "little", signed=signed)

    def _leb(self) -> int:
        value, self._offset = leb(self._code, self._offset)
        return value

    def _sleb(self) -> int:
        value, self._offset = sleb(self._code, self._offset)
        return value
