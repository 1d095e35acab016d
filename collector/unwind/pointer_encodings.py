"""Pointers in .eh_frame and .eh_frame_hdr (Linux Standard Base 5, 10.5.1: DW_EH_PE_*)."""

from __future__ import annotations

from locktop.collector.symbols.dwarf.abbrevs import leb, sleb

OMITTED = 0xFF
#: What the linker's table is of: pairs of signed 32-bit distances from the table's section.
TABLE = 0x3B
_ABSOLUTE, _FROM_HERE, _FROM_DATA, _ALIGNED, _INDIRECT = 0x00, 0x10, 0x30, 0x50, 0x80
_SIZES = {0x00: 8, 0x02: 2, 0x03: 4, 0x04: 8, 0x0A: 2, 0x0B: 4, 0x0C: 8}
_ULEB, _SLEB = 0x01, 0x09
_ADDRESSES = 1 << 64


def pointer(data: bytes, at: int, encoding: int, place: int, base: int = 0) -> tuple[int, int]:
    """Return a pointer and where it ends. ``place`` is the address of data[0], ``base`` of the
    section that others count from.

    Raises ValueError for an encoding that has no meaning here, IndexError where data ends.
    """
    if encoding == _ALIGNED:
        at += -(place + at) % 8
        return _fixed(data, at, 8, signed=False), at + 8
    here = place + at
    value, at = _plain(data, at, encoding & 0x0F)
    if encoding & _INDIRECT:
        raise ValueError("a pointer lies elsewhere")
    applied = encoding & 0x70
    if applied == _FROM_HERE:
        value += here
    elif applied == _FROM_DATA:
        value += base
    elif applied != _ABSOLUTE:
        raise ValueError(f"pointers of encoding {encoding:#x} are not known")
    return value % _ADDRESSES, at


def size(data: bytes, at: int, encoding: int) -> tuple[int, int]:
    """Return a length that is told like a pointer, and where it ends."""
    return _plain(data, at, encoding & 0x0F, unsigned=True)


def skipped(data: bytes, at: int, encoding: int, place: int) -> int:
    """Return where a pointer ends that nobody wants to know."""
    if encoding == OMITTED:
        return at
    if encoding == _ALIGNED:
        return at + -(place + at) % 8 + 8
    return _plain(data, at, encoding & 0x0F)[1]


def _plain(data: bytes, at: int, form: int, *, unsigned: bool = False) -> tuple[int, int]:
    if form == _ULEB:
        return leb(data, at)
    if form == _SLEB:
        return sleb(data, at)
    length = _SIZES.get(form)
    if length is None:
        raise ValueError(f"pointers of form {form:#x} are not known")
    return _fixed(data, at, length, signed=form >= 0x0A and not unsigned), at + length


def _fixed(data: bytes, at: int, length: int, *, signed: bool) -> int:
    if at + length > len(data):
        raise IndexError("a pointer is cut off")
    return int.from_bytes(data[at : at + length], "little", signed=signed)
