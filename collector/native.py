"""The shared memory's layout in Python: typed records read out of bytes.

The layout is defined once, in ``native/include/locktop/abi.h``, and compiled into
``locktop._abi``. A record here names the fields that it wants; where they lie is asked of the
compiled header, so that a field which is moved or removed there is noticed at once.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar, cast

_abi = importlib.import_module("locktop._abi")
ffi: Any = _abi.ffi
lib: Any = _abi.lib

_CODES = {"uint8_t": "B", "uint16_t": "H", "uint32_t": "I", "uint64_t": "Q"}

R = TypeVar("R", bound=tuple[Any, ...])


class Record(Generic[R]):
    """How to read a NamedTuple out of the struct of the same fields, in the same order."""

    def __init__(self, record: type[R], name: str) -> None:
        self.size: int = ffi.sizeof(name)
        self._make = cast(Callable[[Iterable[Any]], R], record._make)  # type: ignore[attr-defined]
        layout = _format(name, record._fields)  # type: ignore[attr-defined]
        self._struct = struct.Struct(layout)
        self._whole = struct.Struct(f"{layout}{self.size - self._struct.size}x")

    def at(self, data: bytes | bytearray | memoryview, offset: int = 0) -> R:
        """Return the record at ``offset``; raises struct.error when it is not all there."""
        return self._make(self._struct.unpack_from(data, offset))

    def each(self, data: bytes) -> list[R]:
        """Return the records that lie in ``data`` one after the other; raises struct.error when the
        last one is not all there."""
        return list(map(self._make, self._whole.iter_unpack(data)))


def _format(name: str, wanted: tuple[str, ...]) -> str:
    codes, at = ["="], 0
    fields = _fields(ffi.typeof(name))
    for field in wanted:
        if fields[field].offset < at:
            raise TypeError(f"{name}: {field} does not lie in the order of the record")
        codes.append(f"{fields[field].offset - at}x")
        code, size = _code(fields[field].type)
        codes.append(code)
        at = fields[field].offset + size
    return "".join(codes)


def _fields(struct_type: Any) -> dict[str, Any]:
    """The fields by name, those of unions without a name among them (which lie where it begins)."""
    fields: dict[str, Any] = {}
    for name, field in struct_type.fields:
        inner = dict(field.type.fields) if not name else {name: field}
        fields |= {own: _Field(field.offset, one.type) for own, one in inner.items()}
    return fields


class _Field(NamedTuple):
    offset: int
    type: Any


def _code(kind: Any) -> tuple[str, int]:
    if kind.kind == "array":  # only bytes: they come out as one value
        return f"{ffi.sizeof(kind)}s", ffi.sizeof(kind)
    return _CODES[kind.cname], ffi.sizeof(kind)


def offset_of(name: str, *path: str | int) -> int:
    """Return where a field lies in a struct, bytes."""
    return int(ffi.offsetof(name, *path))
