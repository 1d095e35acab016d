"""A frame register that the kernel did not tell: found by what must be so, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.unwind.code_map import CodeMap, Place
from locktop.collector.unwind.frame_size import MOST_CODE, Distance, distance
from locktop.collector.unwind.machine import Machine

_LONGEST_CALL = 7  # bytes, but for prefixes
_CALL = 0xE8
_INDIRECT, _OF_CALLS = 0xFF, 2  # what its second byte has in the middle
_MOST_KEPT = 4096


class FrameRegisters:
    """Of one process; what the code of a function tells is kept."""

    def __init__(self, machine: Machine, code: CodeMap) -> None:
        self._tells = machine.name == "x86_64"
        self._code = code
        self._known: dict[tuple[int, int, int], Distance | None] = {}

    def candidates(
        self, place: Place, pc: int, sp: int, register: int, *, is_return: bool
    ) -> Iterator[int]:
        """Give the values that a register may have in a frame; none where that is not known."""
        if not self._tells:
            return
        key = place.start, pc, register
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            code = place.code(MOST_CODE + 1)
            self._known[key] = distance(code, place.start, pc, register, is_return=is_return)
        found = self._known[key]
        if found is None or (found.aligned and (sp + found.after) % found.aligned):
            return
        yield from range(sp + found.size, sp + found.size + max(found.aligned, 1), 8)

    def follows_a_call(self, address: int) -> bool:
        """Tell whether the instruction before an address is, as it seems, a call."""
        if not self._code.is_code(address - 1):
            return False
        before = self._code.read(address - _LONGEST_CALL, _LONGEST_CALL)
        if len(before) < _LONGEST_CALL:
            return False
        return before[-5] == _CALL or any(
            before[-size] == _INDIRECT and before[1 - size] >> 3 & 7 == _OF_CALLS
            for size in range(2, _LONGEST_CALL + 1)
        )
