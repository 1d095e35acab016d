"""A frame register that the kernel did not tell: found by what must be so, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.unwind.arch import Machine
from locktop.collector.unwind.code_map import CodeMap, Place
from locktop.collector.unwind.eh_frame import FrameTable
from locktop.collector.unwind.truncation import Cut
from locktop.collector.unwind.x86_64.frame_offset import MAX_CODE, Distance, distance, jumps_out

_LONGEST_CALL = 7  # bytes, but for prefixes
_CALL = 0xE8
_INDIRECT, _OF_CALLS = 0xFF, 2  # what its second byte has in the middle
_MAX_KEPT = 4096


class FrameRegisters:
    """Of one process; what the code of a function tells is kept."""

    def __init__(self, machine: Machine, code: CodeMap) -> None:
        self._tells = machine.name == "x86_64"
        self._code = code
        self._known: dict[tuple[FrameTable, int, int, int], Distance | None] = {}

    def candidates(
        self, place: Place, pc: int, sp: int, register: int, *, is_return: bool
    ) -> Sequence[int] | None:
        """Return the values that a register may have in a frame; None where that is not known."""
        if not self._tells:
            return None
        key = place.table, place.start, pc, register  # other code may lie there later on
        if key not in self._known:
            if len(self._known) >= _MAX_KEPT:
                self._known.clear()
            code = place.code(MAX_CODE + 1)
            self._known[key] = distance(code, place.start, pc, register, is_return=is_return)
        found = self._known[key]
        if found is None:
            return None
        if found.aligned and (sp + found.after) % found.aligned:
            return ()
        return range(sp + found.size, sp + found.size + max(found.aligned, 1), 8)

    def may_return_to(self, address: int) -> bool:
        """Tell whether a function may return to an address: behind a call, or to the beginning of
        what the kernel, or who made the stack, has put there to be returned to."""
        if not self._code.is_code(address):
            return False
        before = self._code.read(address - _LONGEST_CALL, _LONGEST_CALL)
        if len(before) == _LONGEST_CALL and (before[-5] == _CALL or is_indirect(before)):
            return True
        try:
            place = self._code.place(address)
        except Cut:
            return False
        return place.row.is_signal or place.start == address

    def may_call(self, returns: int, callee: Place) -> bool:
        """Tell whether what returns to an address may have led to a function: not where another
        one was called that is left by its return alone."""
        before = self._code.read(returns - _LONGEST_CALL, _LONGEST_CALL)
        if len(before) < _LONGEST_CALL or before[-5] != _CALL or is_indirect(before):
            return True
        target = (returns + int.from_bytes(before[-4:], "little", signed=True)) % (1 << 64)
        if target == callee.start:
            return True
        try:
            other = self._code.place(target)
            return other.start != target or jumps_out(other.code(MAX_CODE + 1), target)
        except Cut:
            return True


def is_indirect(before: bytes) -> bool:
    """Tell whether the bytes before a return address may be a call through a register or memory."""
    return any(
        before[-size] == _INDIRECT and before[1 - size] >> 3 & 7 == _OF_CALLS
        for size in range(2, _LONGEST_CALL + 1)
    )
