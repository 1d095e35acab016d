"""The first use of a lock in the code of a frame: the code takes or releases the lock (x86-64).

A thread that has a lock goes on to release it; another one has to take it first. So the code is
followed from the return address of a frame on. The registers that the walk of the stack knows, and
the memory of the process, have the values of this moment. All other values are unknown, and both
ways of a branch on such a value are followed. A way ends at the first write to the word of the
lock, or where the frame ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import PurePath

from iced_x86 import FlowControl, Instruction, Mnemonic, Register

from locktop.collector.symbols.unwind.code_map import CodeMap
from locktop.collector.symbols.unwind.first_use import SoughtLock
from locktop.collector.symbols.unwind.stack_memory import StackCut
from locktop.collector.symbols.unwind.x86_64.call_target import call_target, jump_target
from locktop.collector.symbols.unwind.x86_64.code_search import CodeSearch
from locktop.collector.symbols.unwind.x86_64.function_code import CALLS, FunctionCode
from locktop.collector.symbols.unwind.x86_64.machine_state import (
    ARGUMENTS,
    DWARF_REGISTERS,
    KEPT_REGISTERS,
    MachineState,
    Read,
)
from locktop.collector.symbols.unwind.x86_64.past_values import PastValues, StackFrame
from locktop.collector.symbols.unwind.x86_64.static_guard import decoded

_MAX_CODE = 1 << 15  # bytes of a function
_LIBC = ("libc.so.", "libc-2.", "libpthread", "ld-musl")
#: Functions that return a new object, and how deep functions around them may be.
_ALLOCATORS = ("malloc", "calloc", "aligned_alloc", "_Znwm", "_Znam")
_MAX_WRAPPERS, _MAX_WRAPPER_CODE = 3, 64
_CALLS_AND_JUMPS = CALLS | {FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH}
_SEGMENTS = (Register.FS, Register.GS)
_MAX_TAKERS = 3  # frames behind the one that releases a lock
_WORD, _PAGE = 8, 1 << 12
_STACK_REGISTER = 7  # DWARF's number


class UseFinder:
    """Follows the code of one process."""

    def __init__(self, code: CodeMap) -> None:
        self._code = code
        self._functions: dict[int, FunctionCode] = {}  # by the function's address
        self._by_address: dict[int, FunctionCode] = {}
        self._sizes: dict[int, int | None] = {}

    def first_use(
        self,
        tid: int,
        frames: Sequence[tuple[int, Mapping[int, int]]],
        words: SoughtLock,
        read: Read,
    ) -> tuple[int, bool]:
        """Return whether the frames of a stack go on to release a lock.

        Args:
            tid: the id of the thread, in the pid namespace of the process.
            frames: The return addresses, innermost first. For each the registers that are known
                there, by DWARF's numbers, with the stack pointer.
            words: those of the lock.
            read: reads up to so many bytes of the process at an address.

        Returns:
            The return address in the innermost frame whose code writes to a word, 0 without one,
            and whether that is a release.
        """
        stack = [
            StackFrame(
                returns,
                {
                    DWARF_REGISTERS[number]: value
                    for number, value in registers.items()
                    if number in DWARF_REGISTERS
                },
            )
            for returns, registers in frames
        ]
        past = PastValues(self, stack, _PageCache(read).read)
        memory: dict[int, int | None] = {}  # what the frames before write
        for index, frame in enumerate(stack):
            kept = partial(past.kept_register, index)
            state = MachineState(dict(frame.registers), memory, kept, tid=tid)
            outcome = CodeSearch(self, words, past.read).follow(frame.returns, state, 0)
            if outcome.uses:
                # Code that releases the lock on some ways only has often released it before.
                is_release = words.is_released(outcome.uses) and outcome.end is None
                if is_release and words.needs_proof:
                    is_release = self._has_taken(past, stack, index, words)
                return frame.returns, is_release
            if outcome.end is None and not outcome.is_lost:
                break  # the function does not return
            memory = outcome.end.memory if outcome.end is not None else {}
        return 0, False

    def _has_taken(
        self,
        past: PastValues,
        stack: Sequence[StackFrame],
        first: int,
        words: SoughtLock,
    ) -> bool:
        """Return whether a frame or one behind it has taken the lock before its call."""
        free = (1 if words.is_free_high else 0).to_bytes(_WORD, "little")
        for index in range(first, min(first + _MAX_TAKERS, len(stack))):
            memory: dict[int, int | None] = {
                word + offset: byte for word in words.addresses for offset, byte in enumerate(free)
            }
            state = MachineState(
                {},
                memory,
                partial(past.entry_register, index),
                KEPT_REGISTERS | ARGUMENTS,
                is_past=True,
            )
            returns = stack[index].returns
            start = self.function(returns - 1).start
            uses = CodeSearch(self, words, past.read, until=returns).follow(start, state, 0).uses
            if uses:
                return words.is_taken(uses)
        return False

    def function(self, address: int) -> FunctionCode:
        """Return the function at an address; an empty one if its code is not known."""
        function = self._by_address.get(address)
        if function is None:
            function = self._by_address[address] = self._function(address)
        return function

    def _function(self, address: int) -> FunctionCode:
        try:
            frame = self._code.frame_at(address)
            if frame.start not in self._functions:
                instructions = decoded(frame.code(_MAX_CODE), frame.start)
                self._functions[frame.start] = FunctionCode(
                    frame.start, instructions, self.is_at_end
                )
            return self._functions[frame.start]
        except StackCut:
            return FunctionCode(address, {})

    def target(self, call: Instruction) -> int:
        """Return the target of a call; 0 if the call does not give it."""
        return call_target(self._code, call.next_ip)

    def is_libc(self, address: int) -> bool:
        """Return whether the code at an address belongs to the C library."""
        file = self._code.file(address)
        return file is not None and PurePath(file[-1]).name.startswith(_LIBC)

    def allocates(self, call: Instruction) -> bool:
        """Return whether a call returns a new object, which no other code knows yet."""
        return self._is_allocator(self.target(call), 0)

    @cached_property
    def _allocators(self) -> frozenset[int]:
        return frozenset(map(self._code.function_named, _ALLOCATORS)) - {0}

    def _is_allocator(self, address: int, depth: int) -> bool:
        """Return whether a function is an allocator, or calls one and uses no static data."""
        if address in self._allocators:
            return True
        instructions = self.function(address).instructions if address else {}
        if depth >= _MAX_WRAPPERS or len(instructions) > _MAX_WRAPPER_CODE:
            return False
        targets = []
        for instruction in instructions.values():
            if instruction.flow_control in _CALLS_AND_JUMPS:
                targets.append(self._outer_target(instruction, instructions))
            elif instruction.memory_segment in _SEGMENTS or (
                instruction.is_ip_rel_memory_operand and instruction.mnemonic != Mnemonic.LEA
            ):
                return False
        return any(target and self._is_allocator(target, depth + 1) for target in targets)

    def _outer_target(self, branch: Instruction, code: Mapping[int, Instruction]) -> int:
        """Return the function that a call or jump leads to; 0 if none, or if it is not known."""
        if branch.flow_control in CALLS:
            return self.target(branch)
        if branch.flow_control is FlowControl.UNCONDITIONAL_BRANCH:
            target = branch.near_branch_target
            return 0 if target in code else self.destination(target)
        if not branch.is_ip_rel_memory_operand:
            return 0
        return int.from_bytes(self._code.read(branch.ip_rel_memory_address, _WORD), "little")

    def destination(self, address: int) -> int:
        """Return the function to which a jump to an address leads."""
        return jump_target(self._code, address)

    def is_at_end(self, ip: int) -> bool:
        """Return whether a frame has only its return address left before an instruction."""
        return self.frame_size(ip) == _WORD

    def frame_size(self, ip: int) -> int | None:
        """Return how far the stack pointer is below the frame's end at an instruction."""
        if ip not in self._sizes:
            try:
                cfa = self._code.frame_at(ip).row.cfa
            except StackCut:
                cfa = None
            is_plain = cfa is not None and not cfa.code and cfa.register == _STACK_REGISTER
            self._sizes[ip] = cfa.distance if cfa is not None and is_plain else None
        return self._sizes[ip]


class _PageCache:
    """The memory of the process, a page read once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._pages: dict[int, bytes] = {}

    def read(self, address: int, size: int) -> bytes:
        """Return up to so many bytes at an address."""
        begin, inside = address & ~(_PAGE - 1), address & (_PAGE - 1)
        page = self._pages.get(begin)
        if page is None:
            page = self._pages[begin] = self._read(begin, _PAGE)
        data = page[inside : inside + size]
        if len(data) == size or len(page) < _PAGE:
            return data
        return data + self.read(begin + _PAGE, size - len(data))
