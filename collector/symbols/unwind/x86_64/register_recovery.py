"""A frame register that the kernel does not give, derived from the machine code or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.code_map import CodeFrame, CodeMap
from locktop.collector.symbols.unwind.eh_frame import FrameTable
from locktop.collector.symbols.unwind.stack_memory import StackCut
from locktop.collector.symbols.unwind.x86_64.calls import DIRECT_CALL, MAX_CALL, is_indirect_call

if TYPE_CHECKING:
    from locktop.collector.symbols.unwind.x86_64.frame_offset import FrameOffset

_MAX_KEPT = 4096


class _Key(NamedTuple):
    table: FrameTable  # other code may lie at the same address later
    start: int
    pc: int
    register: int


class FrameRegisters:
    """The frame registers of one process; what the code of a function gives is kept."""

    def __init__(self, architecture: Architecture, code: CodeMap) -> None:
        self._is_supported = architecture.name == "x86_64"
        self._code = code
        self._offsets: dict[_Key, FrameOffset | None] = {}

    def candidates(
        self, frame: CodeFrame, pc: int, sp: int, register: int, *, is_return: bool
    ) -> Sequence[int] | None:
        """Return the values that a register may have in a frame; None if they are not known.

        Args:
            frame: The frame information for ``pc``.
            pc: The program counter, or the return address if ``is_return``.
            sp: The stack pointer there.
            register: DWARF's number of the register.
            is_return: Whether ``pc`` follows a call.
        """
        if not self._is_supported:
            return None
        # Here: iced_x86 takes 8 ms to import, and most stacks do without.
        from locktop.collector.symbols.unwind.x86_64 import frame_offset

        key = _Key(frame.table, frame.start, pc, register)
        if key not in self._offsets:
            if len(self._offsets) >= _MAX_KEPT:
                self._offsets.clear()
            code = frame.code(frame_offset.MAX_CODE + 1)
            self._offsets[key] = frame_offset.frame_offset(
                code, frame.start, pc, register, is_return=is_return
            )
        offset = self._offsets[key]
        if offset is None:
            return None
        if offset.alignment and (sp + offset.taken_since) % offset.alignment:
            return ()
        first = sp + offset.size
        return range(first, first + max(offset.alignment, 1), 8)

    def may_return_to(self, address: int) -> bool:
        """Tell whether a function may return to an address.

        The address follows a call, or begins code that the kernel or the stack's maker put there to
        return to.
        """
        if not self._code.is_code(address):
            return False
        before = self._code.read(address - MAX_CALL, MAX_CALL)
        if len(before) == MAX_CALL and (before[-5] == DIRECT_CALL or is_indirect_call(before)):
            return True
        try:
            frame = self._code.frame_at(address)
        except StackCut:
            return False
        return frame.row.is_signal or frame.start == address

    def may_call(self, return_address: int, callee: CodeFrame) -> bool:
        """Tell whether the call before a return address may have led to a function.

        The answer is no if the call is to another function, which never goes on as a third one.
        """
        before = self._code.read(return_address - MAX_CALL, MAX_CALL)
        if len(before) < MAX_CALL or before[-5] != DIRECT_CALL or is_indirect_call(before):
            return True
        distance = int.from_bytes(before[-4:], "little", signed=True)
        target = (return_address + distance) % (1 << 64)
        if target == callee.start:
            return True
        from locktop.collector.symbols.unwind.x86_64 import frame_offset

        try:
            other = self._code.frame_at(target)
            return other.start != target or frame_offset.jumps_out(
                other.code(frame_offset.MAX_CODE + 1), target
            )
        except StackCut:
            return True
