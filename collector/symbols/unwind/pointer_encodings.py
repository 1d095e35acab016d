"""Pointers in .eh_frame and .eh_frame_hdr (Linux Standard Base 5, 10.5.1: DW_EH_PE_*)."""

from __future__ import annotations

from locktop.collector.symbols.dwarf.abbrevs import leb, sleb

OMITTED = 0xFF
#: The linker's table has pairs of signed 32-bit distances from the table's section.
TABLE = 0x3B
ABSOLUTE, FROM_HERE, _FROM_DATA = 0x00, 0x10, 0x30
_SIZES = {0x00: 8, 0x02: 2, 0x03: 4, 0x04: 8, 0x0A: 2, 0x0B: 4, 0x0C: 8}
_ULEB, _SLEB, _FIRST_SIGNED = 0x01, 0x09, 0x0A
ADDRESS_LIMIT = 1 << 64


def pointer(
    data: bytes, offset: int, encoding: int, address: int, base: int = 0
) -> tuple[int, int]:
    """Return a pointer and the offset behind it.

    Args:
        data: The bytes around the pointer.
        offset: The offset of the pointer in ``data``.
        encoding: One of DW_EH_PE_*.
        address: The address of ``data[0]``.
        base: The address that pointers "from the data" count from.

    Raises:
        ValueError: The encoding has no meaning here.
        IndexError: ``data`` ends before the pointer does.
    """
    form, applied, here = encoding & 0x0F, encoding & 0xF0, address + offset
    if form in (_ULEB, _SLEB):
        value, offset = (leb if form == _ULEB else sleb)(data, offset)
    elif form in _SIZES:
        end = offset + _SIZES[form]
        if end > len(data):
            raise IndexError("a pointer is cut off")
        value = int.from_bytes(data[offset:end], "little", signed=form >= _FIRST_SIGNED)
        offset = end
    else:
        raise ValueError(f"pointers of form {form:#x} are not known")
    if applied == FROM_HERE:
        value += here
    elif applied == _FROM_DATA:
        value += base
    elif applied != ABSOLUTE:  # an indirect or an aligned pointer
        raise ValueError(f"pointers of encoding {encoding:#x} are not known")
    return value % ADDRESS_LIMIT, offset
