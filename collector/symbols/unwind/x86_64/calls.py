"""Call instructions as the bytes before a return address show them (x86-64)."""

from __future__ import annotations

#: Bytes of the longest call, without prefixes.
MAX_CALL = 7
DIRECT_CALL = 0xE8
_INDIRECT, _CALL_EXTENSION = 0xFF, 2  # the second is in the middle of the byte that follows
#: The parts of that byte, ModRM: the register that means a SIB byte, or a distance alone.
_IS_REGISTER, _WITH_SIB, _NO_BASE = 3, 4, 5
_DISTANCE_SIZES = {0: 0, 1: 1, 2: 4, _IS_REGISTER: 0}


def is_indirect_call(before: bytes) -> bool:
    """Tell whether the ``MAX_CALL`` bytes before a return address may be a call through a register
    or through memory."""
    return any(
        before[-size] == _INDIRECT and _is_call(before[len(before) - size + 1 :])
        for size in range(2, MAX_CALL + 1)
    )


def _is_call(operand: bytes) -> bool:
    """Tell whether bytes are exactly the operand of an indirect call."""
    mode, extension, register = operand[0] >> 6, operand[0] >> 3 & 7, operand[0] & 7
    size = 1 + _DISTANCE_SIZES[mode]
    if mode != _IS_REGISTER and register == _WITH_SIB:
        size += 1
        register = operand[1] & 7 if len(operand) > 1 else register
    if mode == 0 and register == _NO_BASE:
        size += 4
    return extension == _CALL_EXTENSION and size == len(operand)
