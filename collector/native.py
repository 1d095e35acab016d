"""The compiled C declarations: functions of the native reader, and typed records of C structs.

``native/include/locktop/abi.h`` defines the layout once; the build compiles that header into
``locktop._abi``. A record names the fields that it reads. The compiled header says where they lie,
so a field that is moved or removed there is noticed at once.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar, cast

_abi = importlib.import_module("locktop._abi")
ffi: Any = _abi.ffi
lib: Any = _abi.lib

_CODES = {"uint8_t": "B", "uint16_t": "H", "uint32_t": "I", "uint64_t": "Q"}

R = TypeVar("R", bound=tuple[Any, ...])


class Record(Generic[R]):
    """Reads and packs a NamedTuple as a C struct.

    The match is by name. The fields of the NamedTuple and the format of the struct module come from
    one list of names. The compiled header gives each name its offset and type. A field that is
    missing in the header, or out of order there, raises an exception at import.

    Args:
        record: a NamedTuple whose fields are fields of the struct, in the same order.
        name: the C struct, such as "struct lt_wait".
    """

    def __init__(self, record: type[R], name: str) -> None:
        self.size: int = ffi.sizeof(name)
        self._make = cast(Callable[[Iterable[Any]], R], record._make)  # type: ignore[attr-defined]
        layout = _format(name, record._fields)  # type: ignore[attr-defined]
        self._struct = struct.Struct(layout)
        self._whole = struct.Struct(f"{layout}{self.size - self._struct.size}x")

    def unpack(self, data: bytes | bytearray | memoryview, offset: int = 0) -> R:
        """Return the record at ``offset``. Raises struct.error when ``data`` ends before."""
        return self._make(self._struct.unpack_from(data, offset))

    def each(self, data: bytes | bytearray | memoryview) -> list[R]:
        """Return the records that lie in ``data`` one after the other. Raises struct.error when
        ``data`` does not hold a whole number of records."""
        return list(map(self._make, self._whole.iter_unpack(data)))

    def tuples(self, data: bytes | bytearray | memoryview) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of the records of ``each()`` as plain tuples, which is faster."""
        return self._whole.iter_unpack(data)

    def pack(self, record: R) -> bytes:
        """Return the struct with the fields of ``record``; all other bytes are 0."""
        return self._whole.pack(*record)


def _format(name: str, wanted: tuple[str, ...]) -> str:
    codes, end = ["="], 0
    fields = _fields(ffi.typeof(name))
    for field in wanted:
        if fields[field].offset < end:
            raise TypeError(f"{name}: {field} does not lie in the order of the record")
        codes.append(f"{fields[field].offset - end}x")
        code, size = _code(fields[field].type)
        codes.append(code)
        end = fields[field].offset + size
    return "".join(codes)


def _fields(struct_type: Any) -> dict[str, Any]:
    """Return the fields by name. The fields of a union without a name are among them, at the offset
    of that union."""
    fields: dict[str, Any] = {}
    for name, field in struct_type.fields:
        members = dict(field.type.fields) if not name else {name: field}
        fields |= {
            member_name: _Field(field.offset, member.type)
            for member_name, member in members.items()
        }
    return fields


class _Field(NamedTuple):
    offset: int
    type: Any


def _code(c_type: Any) -> tuple[str, int]:
    """Return the code of the struct module for a type, and the size of the type in bytes."""
    if c_type.kind == "array":  # only arrays of bytes: each becomes one value
        return f"{ffi.sizeof(c_type)}s", ffi.sizeof(c_type)
    return _CODES[c_type.cname], ffi.sizeof(c_type)


def offset_of(name: str, *path: str | int) -> int:
    """Return the offset of a field in a struct, bytes. ``path`` leads to the field through inner
    structs and arrays, such as "clock", "ticks"."""
    return int(ffi.offsetof(name, *path))
