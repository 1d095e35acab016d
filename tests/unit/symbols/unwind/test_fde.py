"""Entries of call frame information made by hand: forms that compilers write rarely, or never."""

from __future__ import annotations

import struct
import time

import pytest

from locktop.collector.symbols.unwind.cfi_program import (
    CfaRule,
    RegisterRule,
    RuleKind,
    UnwindRow,
    row,
)
from locktop.collector.symbols.unwind.fde import FrameEntries, FrameSection

BEGIN, START, SIZE = 0x40_0000, 0x1000, 0x100
RETURN = 16
DATA_FACTOR = -8
DEF_CFA = b"\x0c\x07\x08"  # the stack pointer plus 8
#: Of .debug_frame: version 1, no augmentation, factors 2 and -8.
COMMON = b"\xff\xff\xff\xff\x01\x00" + bytes([2, DATA_FACTOR & 0x7F, RETURN]) + DEF_CFA


def entry(body: bytes, *, wide: bool = False) -> bytes:
    """The data after its length."""
    head = b"\xff\xff\xff\xff" + struct.pack("<Q", len(body)) if wide else b""
    return (head or struct.pack("<I", len(body))) + body


def debug_frame(instructions: bytes, common: bytes = COMMON) -> FrameEntries:
    """A CIE and one FDE."""
    function = struct.pack("<IQQ", 0, START, SIZE) + instructions
    return entries(entry(common) + entry(function), 0, is_loaded=False)


def eh_frame(instructions: bytes, encoding: int, augmentation: bytes = b"zR\0") -> FrameEntries:
    """A CIE with an encoding of addresses, and an FDE with a relative address."""
    common = struct.pack("<I", 0) + b"\x01" + augmentation + bytes([1, DATA_FACTOR & 0x7F, RETURN])
    common = entry(common + bytes([1, encoding]) + DEF_CFA)
    here = BEGIN + len(common) + 8
    value = struct.pack("<ii", START - here, SIZE)
    function = entry(struct.pack("<I", len(common) + 4) + value + b"\0" + instructions)
    return entries(common + function, BEGIN, is_loaded=True)


def entries(data: bytes, begin: int, *, is_loaded: bool) -> FrameEntries:
    section = FrameSection(
        lambda at, size: data[at - begin : at - begin + size], begin, begin + len(data), is_loaded
    )
    return FrameEntries(section)


def last_row(found: FrameEntries) -> UnwindRow:
    """The row of the last address of the only function."""
    ((start, position),) = found.starts()
    assert start == START
    return row(found.function(position), START + SIZE - 1)


@pytest.mark.parametrize(
    ("instructions", "cfa"),
    [
        (b"", CfaRule(7, 8)),
        (b"\x0e\x20", CfaRule(7, 32)),
        (b"\x0d\x06", CfaRule(6, 8)),
        (b"\x12\x06\x7e", CfaRule(6, 16)),  # DW_CFA_def_cfa_sf: scaled by the data factor
        (b"\x13\x7d", CfaRule(7, 24)),
        (b"\x0f\x02\x77\x08", CfaRule(-1, 0, b"\x77\x08")),
        (b"\x2e\x10\x0e\x30", CfaRule(7, 48)),  # DW_CFA_GNU_args_size has no effect
        (b"\x41\x0e\x20\x0a\x41\x0e\x30\x0b", CfaRule(7, 32)),
        (b"\x7f\x0e\x20\x7f\x0e\x30\x7f\x0e\x40", CfaRule(7, 48)),  # the third is behind the end
        (b"\x01" + struct.pack("<Q", START + 4) + b"\x0e\x40", CfaRule(7, 64)),
        (b"\x01" + struct.pack("<Q", START + SIZE) + b"\x0e\x40", CfaRule(7, 8)),
    ],
)
def test_each_encoding_of_addresses_is_read(instructions: bytes, cfa: CfaRule) -> None:
    assert last_row(debug_frame(instructions)).cfa == cfa


@pytest.mark.parametrize(
    ("instructions", "rule"),
    [
        (b"\x83\x02", RegisterRule(RuleKind.AT_CFA, -16)),
        (b"\x05\x03\x02", RegisterRule(RuleKind.AT_CFA, -16)),
        (b"\x11\x03\x7e", RegisterRule(RuleKind.AT_CFA, 16)),
        (b"\x14\x03\x02", RegisterRule(RuleKind.CFA_PLUS, -16)),
        (b"\x15\x03\x7e", RegisterRule(RuleKind.CFA_PLUS, 16)),
        (b"\x09\x03\x0c", RegisterRule(RuleKind.REGISTER, 12)),
        (b"\x10\x03\x01\x50", RegisterRule(RuleKind.AT_EXPRESSION, code=b"\x50")),
        (b"\x16\x03\x01\x50", RegisterRule(RuleKind.EXPRESSION, code=b"\x50")),
        (b"\x07\x03", RegisterRule(RuleKind.UNDEFINED)),
        (b"\x83\x02\x08\x03", RegisterRule(RuleKind.SAME)),
        (b"\x83\x02\xc3", None),
        (b"\x83\x02\x06\x03", None),
    ],
)
def test_each_instruction_sets_its_register_rule(
    instructions: bytes, rule: RegisterRule | None
) -> None:
    assert last_row(debug_frame(instructions)).rules.get(3) == rule


def test_signed_return_addresses() -> None:
    assert last_row(debug_frame(b"\x2d")).is_signed
    assert not last_row(debug_frame(b"\x0a\x2d\x0b")).is_signed


def test_entries_of_64_bits_are_read() -> None:
    function = struct.pack("<QQQ", 0, START, SIZE)
    common = b"\xff" * 8 + COMMON[4:]
    data = entry(common, wide=True) + entry(function, wide=True)
    assert last_row(entries(data, 0, is_loaded=False)).cfa == CfaRule(7, 8)
    common = struct.pack("<I", 0) + b"\x01zR\0" + bytes([1, DATA_FACTOR & 0x7F, RETURN, 1, 0x1B])
    common = entry(common + DEF_CFA, wide=True)
    here = BEGIN + len(common) + 16
    function = struct.pack("<Iii", len(common) + 12, START - here, SIZE) + b"\0"
    data = common + entry(function, wide=True)
    assert last_row(entries(data, BEGIN, is_loaded=True)).cfa == CfaRule(7, 8)


def test_relative_addresses_are_read() -> None:
    assert last_row(eh_frame(b"", 0x1B)).cfa == CfaRule(7, 8)
    assert last_row(eh_frame(b"", 0x1B, b"zRS\0")).is_signal


@pytest.mark.parametrize(
    "instructions",
    [
        b"\x0b",  # nothing was remembered
        b"\x0a" * 1000,
        b"\x87",  # cut off
        b"\x05\x80\x80\x01\x02",  # register 16,384
        b"\x0f\x01\x77\x0e\x10",  # an offset to an expression
        b"\x0f\x7f\x77",  # an expression that is cut off
        b"\x2f\x03\x02",  # DW_CFA_GNU_negative_offset_extended
        b"\x3f",
        b"\x0e" + b"\x80" * 2000 + b"\x01",
    ],
)
def test_damaged_instructions_give_no_row(instructions: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        last_row(debug_frame(instructions))


def test_a_relative_location_is_not_read_as_an_absolute_one() -> None:
    with pytest.raises(ValueError, match="set_loc is not known"):
        last_row(eh_frame(b"\x01" + struct.pack("<Q", START + 4), 0x1B))


def test_entries_without_augmentation_are_read() -> None:
    common = struct.pack("<I", 0) + COMMON[4:]
    function = struct.pack("<IQQ", len(common) + 8, START, SIZE) + b"\x0e\x20"
    found = entries(entry(common) + entry(function), BEGIN, is_loaded=True)
    assert last_row(found).cfa == CfaRule(7, 32)


@pytest.mark.parametrize("encoding", [0x9B, 0x3B, 0x50, 0x0F, 0xFF])
def test_unknown_encodings_are_refused(encoding: int) -> None:
    assert list(eh_frame(b"", encoding).starts()) == []


@pytest.mark.parametrize("augmentation", [b"eh\0", b"zX\0", b"R\0"])
def test_unknown_augmentations_are_refused(augmentation: bytes) -> None:
    assert list(eh_frame(b"", 0x1B, augmentation).starts()) == []


def test_circular_entries_end() -> None:
    data = entry(struct.pack("<IQQ", 24, START, SIZE)) + entry(struct.pack("<IQQ", 0, START, SIZE))
    found = entries(data, 0, is_loaded=False)
    assert list(found.starts()) == []
    for position in (0, 24, 4, 1 << 40, -1):
        with pytest.raises(ValueError, match=r"."):
            found.function(position)


def test_an_endless_number_takes_little_time() -> None:
    """pyelftools needs seconds: its time grows with the square of the length."""
    began = time.thread_time()
    with pytest.raises(ValueError, match="a number is too long"):
        debug_frame(b"\x0e" + b"\x80" * 250_000).function(len(entry(COMMON)))
    assert time.thread_time() - began < 0.5
