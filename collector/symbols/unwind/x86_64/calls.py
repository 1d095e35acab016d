"""Call instructions as the bytes before a return address show them (x86-64)."""

from __future__ import annotations

#: Bytes of the longest call, without prefixes.
MAX_CALL = 7
DIRECT_CALL = 0xE8
_INDIRECT, _CALL_EXTENSION = 0xFF, 2  # the second is in the middle of the byte that follows


def is_indirect_call(before: bytes) -> bool:
    """Tell whether the ``MAX_CALL`` bytes before a return address may be a call through a register
    or through memory."""
    return any(
        before[-size] == _INDIRECT and before[1 - size] >> 3 & 7 == _CALL_EXTENSION
        for size in range(2, MAX_CALL + 1)
    )
