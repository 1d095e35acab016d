"""Entries of .debug_info: the layout that an abbreviation gives, to read or to skip an entry.

A unit has up to 100,000 entries, of which most are skipped (docs/internals/adr/0001).
"""

from __future__ import annotations

from typing import Any

# Attributes that are read (DWARF 5, 7.5.4); the GNU ones are of split DWARF 4.
SIBLING, NAME, STMT_LIST, LOW_PC, HIGH_PC = 0x01, 0x03, 0x10, 0x11, 0x12
COMP_DIR, ABSTRACT_ORIGIN, SPECIFICATION, RANGES = 0x1B, 0x31, 0x47, 0x55
CALL_FILE, CALL_LINE, LINKAGE_NAME, MIPS_LINKAGE_NAME = 0x58, 0x59, 0x6E, 0x2007
STR_OFFSETS_BASE, ADDR_BASE, RNGLISTS_BASE, DWO_NAME = 0x72, 0x73, 0x74, 0x76
GNU_DWO_NAME, GNU_DWO_ID, GNU_RANGES_BASE, GNU_ADDR_BASE = 0x2130, 0x2131, 0x2132, 0x2133
_READ = frozenset({
    SIBLING, NAME, STMT_LIST, LOW_PC, HIGH_PC, COMP_DIR, ABSTRACT_ORIGIN, SPECIFICATION, RANGES,
    CALL_FILE, CALL_LINE, LINKAGE_NAME, MIPS_LINKAGE_NAME, STR_OFFSETS_BASE, ADDR_BASE,
    RNGLISTS_BASE, DWO_NAME, GNU_DWO_NAME, GNU_DWO_ID, GNU_RANGES_BASE, GNU_ADDR_BASE,
})  # fmt: skip

# Forms whose values need more than their bytes (7.5.6).
FORM_ADDR, FORM_STRING, FORM_STRP, FORM_REF_ADDR, FORM_LINE_STRP = 0x01, 0x08, 0x0E, 0x10, 0x1F
FORM_REF_UDATA, FORM_SEC_OFFSET, FORM_STRX, FORM_ADDRX, FORM_RNGLISTX = 0x15, 0x17, 0x1A, 0x1B, 0x23
FORM_GNU_ADDR_INDEX, FORM_GNU_STR_INDEX = 0x1F01, 0x1F02
FORM_STRP_SUP, FORM_GNU_REF_ALT, FORM_GNU_STRP_ALT = 0x1D, 0x1F20, 0x1F21
STRING_INDEXES = frozenset({FORM_STRX, FORM_GNU_STR_INDEX, 0x25, 0x26, 0x27, 0x28})
ADDRESS_INDEXES = frozenset({FORM_ADDRX, FORM_GNU_ADDR_INDEX, 0x29, 0x2A, 0x2B, 0x2C})
OTHER_FILES = frozenset({0x1C, 0x24, FORM_GNU_REF_ALT})
UNIT_REFERENCES = frozenset({0x11, 0x12, 0x13, 0x14, FORM_REF_UDATA})
_IMPLICIT_CONST, _FLAG_PRESENT = 0x21, 0x19

_SIZES = {
    0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16,  # data
    0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x20: 8, 0x1C: 4, 0x24: 8,  # references
    0x0C: 1, _FLAG_PRESENT: 0, _IMPLICIT_CONST: 0,
    0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4,  # indexes
}  # fmt: skip
_OFFSETS = {FORM_STRP, FORM_LINE_STRP, FORM_SEC_OFFSET, FORM_STRP_SUP, FORM_GNU_REF_ALT,
            FORM_GNU_STRP_ALT, FORM_REF_ADDR}  # fmt: skip
# Forms whose bytes give their size.
_LEB, _STRING, _BLOCK, _BLOCK1, _BLOCK2, _BLOCK4 = -1, -2, -3, -4, -5, -6
_VARIABLE = {
    0x0D: _LEB, 0x0F: _LEB, FORM_REF_UDATA: _LEB, FORM_STRX: _LEB, FORM_ADDRX: _LEB, 0x22: _LEB,
    FORM_RNGLISTX: _LEB, FORM_GNU_ADDR_INDEX: _LEB, FORM_GNU_STR_INDEX: _LEB,
    FORM_STRING: _STRING,
    0x09: _BLOCK, 0x18: _BLOCK, 0x0A: _BLOCK1, 0x03: _BLOCK2, 0x04: _BLOCK4,
}  # fmt: skip

_MAX_ABBREVIATIONS = 100_000

#: Attribute, form, size as Layout.size() returns it, implicit value.
Field = tuple[int, int, int, int]
#: By attribute: the form, and the number or, for FORM_STRING, the bytes.
Attributes = dict[int, tuple[int, Any]]
#: Form and value of an attribute that refers to another entry.
Reference = tuple[int, int]


def leb(data: bytes, offset: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the offset behind it."""
    value = data[offset]
    offset += 1
    if value < 0x80:
        return value, offset
    value &= 0x7F
    shift = 7
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
        if shift > 70:
            raise ValueError("a number is too long")


def sleb(data: bytes, offset: int) -> tuple[int, int]:
    """Return a signed LEB128 number and the offset behind it."""
    value, end = leb(data, offset)
    bits = 7 * (end - offset)
    return (value - (1 << bits) if value >> (bits - 1) else value), end


class Layout:
    """Sizes in bytes that differ from unit to unit."""

    __slots__ = ("address_size", "offset_size", "version")

    def __init__(self, version: int, address_size: int, offset_size: int) -> None:
        self.version = version
        self.address_size = address_size
        self.offset_size = offset_size

    def size(self, form: int) -> int:
        """Return the size of a form's value; a negative number if its bytes give the size."""
        if form in _OFFSETS:
            old = form == FORM_REF_ADDR and self.version < 3
            return self.address_size if old else self.offset_size
        if form == FORM_ADDR:
            return self.address_size
        size = _SIZES.get(form) if form in _SIZES else _VARIABLE.get(form)
        if size is None:
            raise ValueError(f"form {form:#x} is not known")
        return size


class Abbreviation:
    """The layout of the entries of one kind."""

    __slots__ = ("_all", "_fields", "_steps", "attributes", "children", "sibling", "size", "tag")

    def __init__(self, tag: int, children: bool, fields: list[Field]) -> None:
        self.tag = tag
        self.children = children  # whether child entries follow
        self.attributes = frozenset(field[0] for field in fields)
        sizes = [size for _, _, size, _ in fields]
        fixed = not sizes or min(sizes) >= 0
        self.size = sum(sizes) if fixed else -1  # -1: the sizes of entries differ
        #: Offset and size of the field with the offset of the next entry at this depth. (0, 0) if
        #: there is no such field, or if its offset differs.
        self.sibling = _sibling(fields) if fixed else (0, 0)
        self._steps = _steps(sizes)
        self._fields = _read_fields(fields)
        self._all = fields

    def skip(self, data: bytes, offset: int) -> int:
        """Return the end of an entry whose attributes begin at ``offset``."""
        for size, kind in self._steps:
            offset += size
            if kind == _BLOCK:
                length = data[offset]
                offset += 1
                if length >= 0x80:
                    length, offset = leb(data, offset - 1)
                offset += length
            elif kind == _LEB:
                while data[offset] >= 0x80:
                    offset += 1
                offset += 1
            elif kind == _STRING:
                offset = data.index(0, offset) + 1
            elif kind:
                offset = _block_end(data, offset, kind)
        return offset

    def read(self, data: bytes, offset: int, whole: bool = False) -> tuple[Attributes, int]:
        """Return the attributes for names and lines, or all if ``whole``, and the entry's end."""
        attributes: Attributes = {}
        fields = [(0, *field) for field in self._all] if whole else self._fields
        for before, attribute, form, size, implicit in fields:
            offset += before
            value: Any = implicit
            if size > 0:
                value = int.from_bytes(data[offset : offset + size], "little")
                offset += size
            elif size == _LEB:
                value = data[offset]
                offset += 1
                if value >= 0x80:
                    value, offset = leb(data, offset - 1)
            elif size == _STRING:
                end = data.index(0, offset)
                value, offset = data[offset:end], end + 1
            elif size == _BLOCK:
                length, offset = leb(data, offset)
                offset += length
            elif size:
                offset = _block_end(data, offset, size)
            if attribute:
                attributes[attribute] = form, value
        if offset > len(data):
            raise ValueError("an entry is cut off")
        return attributes, offset


def _read_fields(fields: list[Field]) -> list[tuple[int, int, int, int, int]]:
    """Return the fields to read, each with the bytes to skip before it. Attribute 0 marks a field
    that is read for its size only."""
    kept, before = [], 0
    for attribute, form, size, implicit in fields:
        if attribute in _READ or size < 0:
            kept.append((before, attribute if attribute in _READ else 0, form, size, implicit))
            before = 0
        else:
            before += size
    return [*kept, (before, 0, 0, 0, 0)] if before else kept


def _sibling(fields: list[Field]) -> tuple[int, int]:
    offset = 0
    for attribute, form, size, _ in fields:
        if attribute == SIBLING and form in UNIT_REFERENCES:
            return offset, size
        offset += size
    return 0, 0


def _block_end(data: bytes, offset: int, kind: int) -> int:
    size = {_BLOCK1: 1, _BLOCK2: 2, _BLOCK4: 4}[kind]
    return offset + size + int.from_bytes(data[offset : offset + size], "little")


def _steps(sizes: list[int]) -> tuple[tuple[int, int], ...]:
    """Return bytes to skip, each time with the form behind them whose bytes give its size."""
    steps, fixed = [], 0
    for size in sizes:
        if size >= 0:
            fixed += size
        else:
            steps.append((fixed, size))
            fixed = 0
    return (*steps, (fixed, 0)) if fixed else tuple(steps)


def abbreviations(
    data: bytes, offset: int, layout: Layout, until: int = 0
) -> dict[int, Abbreviation]:
    """Return one table of .debug_abbrev, by code; only up to the code ``until`` if that is not 0.

    Raises:
        ValueError: The table is too large, or has an unknown form.
        IndexError: The data ends before the table does.
    """
    table: dict[int, Abbreviation] = {}
    while len(table) < _MAX_ABBREVIATIONS:
        code, offset = leb(data, offset)
        if not code:
            return table
        tag, offset = leb(data, offset)
        children = bool(data[offset])
        offset += 1
        fields = []
        while True:
            attribute, offset = leb(data, offset)
            form, offset = leb(data, offset)
            if not attribute and not form:
                break
            implicit = 1 if form == _FLAG_PRESENT else 0
            if form == _IMPLICIT_CONST:
                implicit, offset = sleb(data, offset)
            fields.append((attribute, form, layout.size(form), implicit))
        table[code] = Abbreviation(tag, children, fields)
        if code == until:
            return table
    raise ValueError("there are too many abbreviations")
