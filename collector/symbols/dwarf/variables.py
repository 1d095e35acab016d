"""Which part of a variable lies at an address: ``pool.shards[3].mu``, by the variable's type.

No table leads from a variable to its entry, and a large program has millions of entries. But the
entry contains the variable's address as ten bytes that hardly occur elsewhere. The search is for
these bytes.
"""

from __future__ import annotations

import posixpath
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from locktop.collector.symbols.dwarf import abbrevs as dw
from locktop.collector.symbols.dwarf.abbrevs import Attributes, Reference, leb
from locktop.collector.symbols.dwarf.sections import DebugSections
from locktop.collector.symbols.dwarf.units import CompileUnit, Units

_ARRAY, _CLASS, _MEMBER, _POINTER, _STRUCTURE = 0x01, 0x02, 0x0D, 0x0F, 0x13
_TYPEDEF, _UNION, _INHERITANCE, _SUBRANGE = 0x16, 0x17, 0x1C, 0x21
_CONST, _VARIABLE, _VOLATILE, _ATOMIC = 0x26, 0x34, 0x35, 0x47
_OTHER_NAMES = frozenset({_TYPEDEF, _CONST, _VOLATILE, _ATOMIC})  # for the same type
_WITH_MEMBERS = frozenset({_CLASS, _STRUCTURE, _UNION})
_WITH_PARTS = _WITH_MEMBERS | {_ARRAY}
_BYTE_SIZE, _UPPER_BOUND, _COUNT, _MEMBER_LOCATION, _EXTERNAL, _TYPE = (
    0x0B,
    0x2F,
    0x37,
    0x38,
    0x3F,
    0x49,
)
_COMPUTED = frozenset({0x03, 0x04, 0x09, 0x0A, 0x18})  # forms of a computed location

_READ_SIZE = 1 << 20
_MAX_SEARCHED = 1 << 30  # bytes
_MAX_FOUND = 500_000
_MAX_ALIKE = 8
_LOCATION = re.compile(rb"\x09\x03(.{6}\x00\x00)", re.DOTALL)
_LOCATION_SIZE = 10
_MAX_HOPS = 32
_MAX_CHILDREN = 10_000


class Variables:
    """Offsets in the entries of variables in .debug_info, by the variables' addresses.

    Args:
        addresses: Link-time addresses, sorted.
        offsets: The offset for each address.
    """

    def __init__(self, addresses: array[int], offsets: array[int]) -> None:
        self._addresses = addresses
        self._offsets = offsets

    @staticmethod
    def search(sections: DebugSections) -> Variables:
        """Search all variables at once: the search for one takes as long."""
        locations = sorted(_locations(sections))
        addresses = array("Q", [address for address, _ in locations])
        return Variables(addresses, array("Q", [offset for _, offset in locations]))

    @staticmethod
    def unpack(data: bytes) -> Variables:
        """Return what `pack()` returned as bytes; ValueError for any other bytes."""
        half, rest = divmod(len(data), 2)
        if rest:
            raise ValueError("not in pairs")
        return Variables(array("Q", data[:half]), array("Q", data[half:]))

    def pack(self) -> bytes:
        """Return addresses and offsets as bytes."""
        return self._addresses.tobytes() + self._offsets.tobytes()

    def find(self, address: int) -> Sequence[int]:
        """Return the offsets that may lie in the entry of the variable at an address."""
        first = bisect_left(self._addresses, address)
        end = bisect_right(self._addresses, address, first)
        return self._offsets[first : min(end, first + _MAX_ALIKE)]


def _locations(sections: DebugSections) -> Iterator[tuple[int, int]]:
    """Yield address and offset of possible locations of variables. Such a location is nine bytes
    with an address in the lower half of memory (DWARF 5, 2.6.1.1.2)."""
    size, count = min(sections.size("info"), _MAX_SEARCHED), 0
    for begin in range(0, size, _READ_SIZE):
        data = sections.read("info", begin, min(_READ_SIZE + _LOCATION_SIZE - 1, size - begin))
        for match in _LOCATION.finditer(data):
            count += 1
            if count > _MAX_FOUND:
                return
            yield int.from_bytes(match[1], "little"), begin + match.start()


def part_at(
    units: Units, variables: Variables, address: int, offset: int
) -> tuple[str, str] | None:
    """Return the source file of a variable, and which part of it lies at an offset.

    Args:
        units: The units of the file.
        variables: The variables of the file.
        address: The link-time address where the variable begins.
        offset: In bytes.

    Returns:
        The file and the part: "" for the whole, ".member", "[3]", "[3].member.member". None if
        that is not known.

    Raises:
        ValueError, IndexError, struct.error: The entries are damaged.
    """
    for inside in variables.find(address):
        unit = units.unit_at(inside)
        variable = _variable_with(unit, inside)
        if variable is not None:
            type_ = _type_of(unit, variable)
            if type_ is not None:
                return _file(unit), "".join(_cut(_path(*type_, offset)))
    return None


def _variable_with(unit: CompileUnit, offset: int) -> Attributes | None:
    """Return the attributes of the entry with the byte at ``offset``; None if no variable."""
    data, position = unit.data, unit.first - unit.offset
    offset -= unit.offset
    while position <= offset:
        code, after = leb(data, position)
        if not code:
            position = after
            continue
        abbreviation = unit.abbreviations[code]
        end = abbreviation.skip(data, after)
        if offset < end:
            is_variable = abbreviation.tag == _VARIABLE
            return abbreviation.read(data, after, whole=True)[0] if is_variable else None
        sibling, width = abbreviation.sibling
        next_at = int.from_bytes(data[after + sibling : after + sibling + width], "little")
        position = next_at if width and end < next_at <= offset else end
    return None


def _file(unit: CompileUnit) -> str:
    name = unit.string(unit.top[dw.NAME]) if dw.NAME in unit.top else b""
    return posixpath.basename(name.decode("utf-8", "replace"))


def _cut(path: Iterator[str]) -> Iterator[str]:
    """Cut a path at a name of the implementation (C11, 7.1.3): the inside of a lock."""
    for step in path:
        if step[1:3] == "__" or (step[1:2] == "_" and step[2:3].isupper()):
            return
        yield step


def _type_of(unit: CompileUnit, attributes: Attributes) -> tuple[CompileUnit, int] | None:
    """Return the type of an entry, or of the entry that it completes."""
    for _ in range(_MAX_HOPS):
        if _TYPE in attributes:
            return _plain(unit, attributes[_TYPE])
        further = attributes.get(dw.SPECIFICATION) or attributes.get(dw.ABSTRACT_ORIGIN)
        entry = unit.follow(further) if further is not None else None
        if entry is None:
            return None
        unit, offset = entry
        attributes = _entry(unit, offset)[1]
    return None


def _plain(unit: CompileUnit, reference: Reference) -> tuple[CompileUnit, int] | None:
    """Return the type that a reference leads to, behind typedefs and qualifiers."""
    for _ in range(_MAX_HOPS):
        entry = unit.follow(reference)
        if entry is None:
            return None
        unit, offset = entry
        tag, attributes, _ = _entry(unit, offset)
        if tag not in _OTHER_NAMES or _TYPE not in attributes:
            return unit, offset
        reference = attributes[_TYPE]
    return None


def _path(unit: CompileUnit, entry: int, offset: int) -> Iterator[str]:
    """Yield the steps from a type to the part that lies ``offset`` bytes further in."""
    for _ in range(_MAX_HOPS):
        tag, _, _ = _entry(unit, entry)
        if tag == _ARRAY:
            step = _element(unit, entry, offset)
        elif tag in _WITH_MEMBERS:
            step = _member(unit, entry, offset)
        else:
            return
        if step is None:
            return
        text, inner, offset = step
        yield text
        unit, entry = inner


def _member(
    unit: CompileUnit, entry: int, offset: int
) -> tuple[str, tuple[CompileUnit, int], int] | None:
    """Return the member at an offset; of several, as in a union, one that has parts."""
    best = None
    for tag, attributes in _children(unit, entry):
        if tag not in (_MEMBER, _INHERITANCE) or _TYPE not in attributes:
            continue
        if _EXTERNAL in attributes:  # a static member, which lies elsewhere
            continue
        form, begin = attributes.get(_MEMBER_LOCATION, (0, 0))
        inner = _plain(unit, attributes[_TYPE])
        if form in _COMPUTED or inner is None or not begin <= offset < begin + _size(*inner):
            continue
        has_parts = _entry(*inner)[0] in _WITH_PARTS
        if best is None or has_parts:
            name = attributes.get(dw.NAME)
            called = f".{unit.string(name).decode('utf-8', 'replace')}" if name else ""
            best = called, inner, offset - begin
            if has_parts:
                break
    return best


def _element(
    unit: CompileUnit, entry: int, offset: int
) -> tuple[str, tuple[CompileUnit, int], int] | None:
    inner = _plain(unit, _entry(unit, entry)[1][_TYPE])
    size = _size(*inner) if inner is not None else 0
    if inner is None or size <= 0:
        return None
    number, offset = divmod(offset, size)
    indexes = []
    for length in reversed(_lengths(unit, entry)[1:]):
        number, index = divmod(number, max(length, 1))
        indexes.append(index)
    text = "".join(f"[{index}]" for index in (number, *reversed(indexes)))
    return text, inner, offset


def _size(unit: CompileUnit, entry: int) -> int:
    """Return the size of a type in bytes; 0 if it is not known."""
    tag, attributes, _ = _entry(unit, entry)
    if _BYTE_SIZE in attributes and isinstance(attributes[_BYTE_SIZE][1], int):
        return int(attributes[_BYTE_SIZE][1])
    if tag == _POINTER:
        return unit.layout.address_size
    if tag != _ARRAY:
        return 0
    inner = _plain(unit, attributes[_TYPE])
    size = _size(*inner) if inner is not None else 0
    for length in _lengths(unit, entry):
        size *= length
    return size


def _lengths(unit: CompileUnit, entry: int) -> list[int]:
    """Return the lengths of an array's dimensions."""
    lengths = []
    for tag, attributes in _children(unit, entry):
        if tag == _SUBRANGE:
            count = attributes.get(_COUNT, (0, 0))[1]
            last = attributes.get(_UPPER_BOUND, (0, -1))[1]
            lengths.append(count or last + 1)
    return lengths


def _entry(unit: CompileUnit, offset: int) -> tuple[int, Attributes, int]:
    """Return an entry's tag, its attributes, and the index of its children, -1 for none."""
    if offset < unit.first:
        raise ValueError("there is no entry")
    code, position = leb(unit.data, offset - unit.offset)
    abbreviation = unit.abbreviations[code]
    attributes, end = abbreviation.read(unit.data, position, whole=True)
    return abbreviation.tag, attributes, end if abbreviation.children else -1


def _children(unit: CompileUnit, offset: int) -> Iterator[tuple[int, Attributes]]:
    """Yield the children of an entry, without their children."""
    _, _, position = _entry(unit, offset)
    depth = 0
    for _ in range(_MAX_CHILDREN):
        if position < 0:
            return
        code, after = leb(unit.data, position)
        if not code:
            position = after
            depth -= 1
            if depth < 0:
                return
            continue
        abbreviation = unit.abbreviations[code]
        attributes, end = abbreviation.read(unit.data, after, whole=True)
        if depth == 0:
            yield abbreviation.tag, attributes
        position = end
        if abbreviation.children:
            form, sibling = attributes.get(dw.SIBLING, (0, 0))
            if form in dw.UNIT_REFERENCES and sibling > end:
                position = sibling
            else:
                depth += 1
