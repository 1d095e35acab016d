"""Machine code of tests, as the functions of a process."""

from __future__ import annotations

from pathlib import Path

from iced_x86 import Decoder, FlowControl, Instruction, Register
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.x86_64.function_code import FunctionCode

#: Where the functions f0, f1 and so on begin.
STARTS = (0x1000, 0x2000, 0x3000, 0x4000)


class CodeSource:
    """Functions that call each other by these names; those without a text return at once."""

    def __init__(self, directory: Path, *texts: str) -> None:
        self.libc_functions: set[int] = set()
        texts = (*texts, *["ret"] * (len(STARTS) - len(texts)))
        lines = [
            f".org {start:#x}, 0xcc; f{index}: {text}"
            for index, (start, text) in enumerate(zip(STARTS, texts, strict=True))
        ]
        code = assembled(directory, "\n".join(lines))
        self._functions = []
        for start, end in zip(STARTS, (*STARTS[1:], len(code)), strict=True):
            part = code[start:end].rstrip(b"\xcc")
            instructions = {entry.ip: entry for entry in Decoder(64, part, ip=start)}
            self._functions.append(FunctionCode(start, instructions, self.is_at_end))

    def function(self, address: int) -> FunctionCode:
        """Return the function at an address."""
        for function in reversed(self._functions):
            if function.start <= address < function.start + STARTS[0]:
                return function
        return FunctionCode(address, {})

    def target(self, call: Instruction) -> int:
        """Return the target of a direct call."""
        return call.near_branch_target if call.flow_control is FlowControl.CALL else 0

    def allocates(self, call: Instruction) -> bool:
        """Return whether the call is an indirect one: in tests these allocate, but not by rdx."""
        return not self.target(call) and call.op0_register != Register.RDX

    def is_libc(self, address: int) -> bool:
        """Return whether a test says that the C library has the function."""
        return address in self.libc_functions

    def destination(self, address: int) -> int:
        """Return the address: there is no linkage table."""
        return address

    def frame_size(self, ip: int) -> int | None:
        """Return the size of a frame: these functions push nothing before they jump away."""
        return 8

    def is_at_end(self, ip: int) -> bool:
        """Return whether only the return address is left."""
        return True
