"""The instructions of a piece of code, by capstone if it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_TARGET = re.compile(r"#?0x([0-9a-f]{1,16})$")
#: The note of a listing without instructions.
WITHOUT_CAPSTONE = "instructions need capstone: pip install 'locktop[disassembly]'"


class Instruction(Struct, frozen=True, gc=False):
    """One instruction."""

    address: int
    text: str  # "jg +0x14": to the byte 0x14 of the region


def can_disassemble() -> bool:
    """Return whether capstone is installed."""
    try:
        import capstone  # noqa: F401
    except ImportError:
        return False
    return True


def instructions(data: bytes, start: int, machine: str) -> Iterator[Instruction]:
    """Yield the instructions of code that begins with one; bytes that are none are data.

    Args:
        data: the code.
        start: its address.
        machine: ``x86_64`` or ``aarch64``; nothing is known of another.
    """
    reader = _reader(machine)
    if reader is None:
        return
    for address, _, name, operands in reader.disasm_lite(data, start):
        text = f"{name} {_replace_target(operands, start, len(data))}".rstrip()
        yield Instruction(address=address, text=text)


def _replace_target(operands: str, start: int, size: int) -> str:
    """Return operands with the target of a jump within the code as an offset: ``+0x14``."""
    match = _TARGET.search(operands)
    if match is None or not start <= (target := int(match[1], 16)) < start + size:
        return operands
    return f"{operands[: match.start()]}+{target - start:#x}"


def _reader(machine: str) -> Any:
    try:
        import capstone
    except ImportError:
        return None
    kinds = {
        "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }
    if machine not in kinds:
        return None
    reader = capstone.Cs(*kinds[machine])
    reader.skipdata = True
    return reader
