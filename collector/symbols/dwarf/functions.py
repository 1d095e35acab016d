"""The functions of a unit, and the functions that were inlined into each of them."""

from __future__ import annotations

from msgspec import Struct, field

from locktop.collector.symbols.dwarf import abbrevs as dw
from locktop.collector.symbols.dwarf.abbrevs import Abbreviation, Attributes, Reference, leb
from locktop.collector.symbols.dwarf.units import CompileUnit

_SUBPROGRAM, _INLINED = 0x2E, 0x1D
# Arrays, classes, enumerations, structures, types of functions, unions and interfaces contain no
# code. They are skipped at once if the compiler wrote where they end.
_WITHOUT_CODE = frozenset({
    0x01, 0x02, 0x04, 0x13, 0x15, 0x17, 0x38,
})  # fmt: skip
#: In the names of the methods of Rust's locks, in the older mangling.
_GENERIC_LOCKS = ("Mutex$LT$T$GT$", "RwLock$LT$T$GT$")
_MAX_FUNCTIONS = 2_000_000
_MAX_RANGES = 1_000_000
_MAX_DEPTH = 2_000
_MAX_HOPS = 16
_PASS, _SKIP, _FUNCTION = 0, 1, 2


class Functions(Struct):
    """Functions in the order of their entries: an inlined one follows the one around it."""

    origins: list[Reference] = field(default_factory=list)  # the entry with the name
    parents: list[int] = field(default_factory=list)  # the function around it, -1 for none
    call_files: list[int] = field(default_factory=list)  # of an inlined call
    call_lines: list[int] = field(default_factory=list)
    ranges: list[tuple[int, int, int]] = field(default_factory=list)  # low, high, function
    with_code: set[int] = field(default_factory=set)


def read_functions(unit: CompileUnit) -> Functions:
    """Walk over a unit's entries.

    Raises:
        ValueError, IndexError, struct.error: The entries are damaged.
    """
    data, functions = unit.data, Functions()
    kinds = {
        code: (_kind(a), a.size, a.children, *a.sibling, a)
        for code, a in unit.abbreviations.items()
    }
    position, end, start = unit.first - unit.offset, len(data), unit.offset
    context = -1  # the number of the function around the entries
    outer: list[int] = []  # of each open entry the function around it
    while position < end:
        entry = position
        code = data[position]
        position += 1
        if code >= 0x80:
            code, position = leb(data, entry)
        if not code:
            if len(outer) < 2:
                break  # the end of the unit
            context = outer.pop()
            continue
        kind, size, children, sibling, width, abbreviation = kinds[code]
        inside = context
        if kind == _SKIP:
            next_at = int.from_bytes(
                data[position + sibling : position + sibling + width], "little"
            )
            if next_at < position + size:
                raise ValueError("an entry is followed by an earlier one")
            position = next_at
            continue
        if kind == _PASS:
            position = position + size if size >= 0 else abbreviation.skip(data, position)
        else:
            attributes, position = abbreviation.read(data, position)
            inside = _add(functions, unit, abbreviation, attributes, start + entry, context)
            if children and inside not in functions.with_code and dw.SIBLING in attributes:
                # The linker discards all but one of a template's equal functions.
                next_at = attributes[dw.SIBLING][1]
                if next_at < position:
                    raise ValueError("an entry is followed by an earlier one")
                position = next_at
                continue
        if children:
            outer.append(context)
            context = inside
            if len(outer) > _MAX_DEPTH:
                raise ValueError("entries lie too deep")
    return functions


def _kind(abbreviation: Abbreviation) -> int:
    attributes, tag = abbreviation.attributes, abbreviation.tag
    if tag in (_SUBPROGRAM, _INLINED) and (dw.LOW_PC in attributes or dw.RANGES in attributes):
        return _FUNCTION
    # Declarations and abstract functions have no code. A function that refers to another unit may
    # contain lambdas with code.
    is_abstract = tag == _SUBPROGRAM and dw.ABSTRACT_ORIGIN not in attributes
    without_code = tag in _WITHOUT_CODE or is_abstract
    has_end = abbreviation.children and abbreviation.sibling[1]
    return _SKIP if without_code and has_end else _PASS


def _add(
    functions: Functions,
    unit: CompileUnit,
    abbreviation: Abbreviation,
    attributes: Attributes,
    entry: int,
    context: int,
) -> int:
    """Add a function and return its number."""
    number, inlined = len(functions.origins), abbreviation.tag == _INLINED
    # In discarded code addresses count from 0, where other code may lie.
    discarded = context >= 0 and context not in functions.with_code
    ranges = [] if discarded else unit.ranges(attributes)
    if number >= _MAX_FUNCTIONS or len(functions.ranges) + len(ranges) > _MAX_RANGES:
        raise ValueError("a unit has too many functions")
    if ranges:
        functions.with_code.add(number)
    functions.origins.append(attributes.get(dw.ABSTRACT_ORIGIN, (dw.FORM_REF_ADDR, entry)))
    functions.parents.append(context if inlined else -1)
    functions.call_files.append(attributes.get(dw.CALL_FILE, (0, 0))[1] if inlined else 0)
    functions.call_lines.append(attributes.get(dw.CALL_LINE, (0, 0))[1] if inlined else 0)
    functions.ranges += [(low, high, number) for low, high in ranges]
    return number


def lacks_type(mangled: str) -> bool:
    """Return whether a mangled name is that of a method of a lock, without what the lock guards."""
    return any(lock in mangled for lock in _GENERIC_LOCKS)


def function_name(unit: CompileUnit, origin: Reference) -> str:
    """Return a function's name, mangled if there is a mangled one; "" if it has none here.

    The older mangling of Rust leaves out what a generic type is made of. Of a lock it follows in
    brackets, as demangle() takes it.
    """
    plain = ""
    for _ in range(_MAX_HOPS):
        entry = unit.follow(origin)
        if entry is None:
            break
        unit, offset = entry
        attributes = unit.entry(offset)
        for attribute in (dw.LINKAGE_NAME, dw.MIPS_LINKAGE_NAME):
            if attribute in attributes:
                mangled = _text(unit, attributes[attribute])
                if lacks_type(mangled) and dw.NAME in attributes:
                    _, bracket, guarded = _text(unit, attributes[dw.NAME]).partition("<")
                    return mangled + bracket + guarded
                return mangled
        if dw.NAME in attributes:
            plain = plain or _text(unit, attributes[dw.NAME])
        further = attributes.get(dw.ABSTRACT_ORIGIN) or attributes.get(dw.SPECIFICATION)
        if further is None:
            break
        origin = further
    return plain


def _text(unit: CompileUnit, value: tuple[int, int]) -> str:
    return unit.string(value).decode("utf-8", "replace")
