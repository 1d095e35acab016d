"""Reads Python objects in the memory of a process that goes on meanwhile.

Nothing here is trusted: an object counts only if its type is the expected one, and sizes have
limits. Layouts: CPython 3.8 to 3.14, 64 bits (Include/cpython/unicodeobject.h, dictobject.h,
Include/internal/pycore_dict.h, pycore_object.h).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from locktop.collector.symbols.python.object_layout import (
    HEAP_TYPE,
    INLINE_VALUES,
    MANAGED_DICT,
    ObjectLayout,
)

#: Reads the bytes at each (address, size); b"" where the memory cannot be read.
ReadMany = Callable[[Iterable[tuple[int, int]]], list[bytes]]

_WORD = struct.Struct("=Q")
_OLD_KEYS = struct.Struct("=QQQQq")  # references, size, lookup, usable, entries
_KEYS = struct.Struct("=QBBBxIQq")  # references, log2 of size and of index bytes, kind, ...
_SPLIT = 2  # DICT_KEYS_SPLIT
_GENERAL = 0  # DICT_KEYS_GENERAL: entries begin with a hash
_MAX_ENTRIES = 100_000
_MAX_OF_INSTANCE = 1_000  # attributes
_MAX_SIZE = 1 << 20  # of an instance
_MAX_TEXT = 200  # characters that are read
_STATE_BITS = 0b11111  # kind, compact, ascii
_COMPACT, _ASCII = 0b01000, 0b10000
_ENCODINGS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
_DIGIT = 30  # bits


class Types(NamedTuple):
    """The addresses of types."""

    dictionary: int
    string: int
    integer: int
    module: int


class _Keys(NamedTuple):
    entries: int  # address
    entry_size: int
    length: int
    split: bool


class _Attributes(NamedTuple):
    """Where the attributes of an instance lie."""

    keys: int  # address of the table of names
    values: int  # address of the first value; 0: beside the names


class PythonObjects:
    """Reads the objects of one process. Results are None or empty where memory is unexpected."""

    def __init__(self, read_many: ReadMany, layout: ObjectLayout, types: Types) -> None:
        self._read_many = read_many
        self._layout = layout
        self.types = types
        self.header = layout.header

    def words(self, addresses: Sequence[int]) -> list[int]:
        """Return the words at some addresses, 0 where they cannot be read."""
        words = self._read_many([(address if address > 0 else 1, 8) for address in addresses])
        return [_WORD.unpack(data)[0] if len(data) == 8 else 0 for data in words]

    def types_of(self, objects: Sequence[int]) -> list[int]:
        """Return the address of each object's type."""
        type_at = self._layout.header - 8
        return self.words([address + type_at if address else 0 for address in objects])

    def texts(self, objects: Sequence[int]) -> list[str | None]:
        """Return the texts of strings, cut after 200 characters; None for other objects."""
        layout = self._layout
        size = layout.text_at + layout.header
        heads = self._read_many([(address or 1, size) for address in objects])
        pieces: list[tuple[int, int]] = []
        kinds: list[int] = []
        for address, head in zip(objects, heads, strict=True):
            kind, text_at, length = self._text_bounds(head) if len(head) == size else (0, 0, 0)
            kinds.append(kind)
            pieces.append((address + text_at, kind * length) if kind and length else (1, 0))
        parts = iter(self._read_many([piece for piece in pieces if piece[1]]))
        return [
            _decode(next(parts) if wanted else b"", kind, wanted) if kind else None
            for kind, (_, wanted) in zip(kinds, pieces, strict=True)
        ]

    def _text_bounds(self, head: bytes) -> tuple[int, int, int]:
        """Return bytes of a character (0: no string), offset of the text, and characters."""
        layout = self._layout
        if _WORD.unpack_from(head, layout.header - 8)[0] != self.types.string:
            return 0, 0, 0
        (length,) = _WORD.unpack_from(head, layout.header)
        (state,) = struct.unpack_from("=I", head, layout.header + 16)
        bits = state >> layout.state_shift & _STATE_BITS
        kind, is_ascii = bits & 7, bool(bits & _ASCII)
        if not bits & _COMPACT or kind not in _ENCODINGS or (is_ascii and kind != 1):
            return 0, 0, 0
        return kind, layout.text_at if is_ascii else layout.wide_text_at, min(length, _MAX_TEXT)

    def small_ints(self, objects: Sequence[int]) -> list[int | None]:
        """Return the values of ints from 1 to 2**30 - 1; None for other objects."""
        layout = self._layout
        size = layout.header + 12
        result: list[int | None] = []
        for data in self._read_many([(address or 1, size) for address in objects]):
            value = None
            if (
                len(data) == size
                and _WORD.unpack_from(data, layout.header - 8)[0] == self.types.integer
            ):
                tag, digit = struct.unpack_from("=QI", data, layout.header)
                value = digit if tag in layout.one_digit and digit < 1 << _DIGIT else None
            result.append(value)
        return result

    # ---- dictionaries ----

    def items(self, dictionary: int) -> list[tuple[int, int]]:
        """Return the addresses of keys and values of a dict; [] for another object."""
        (where,) = self._dict_parts([dictionary])
        if where is None:
            return []
        keys = self._keys([where.keys]).get(where.keys)
        if keys is None:
            return []
        entries = self._entries(keys)
        if not where.values:
            return [(key, value) for key, value in entries if key and value]
        values = self.words([where.values + 8 * number for number in range(len(entries))])
        return [
            (key, value) for (key, _), value in zip(entries, values, strict=True) if key and value
        ]

    def value(self, dictionary: int, name: str) -> int:
        """Return the address of the value of a string key, 0 if there is none."""
        items = self.items(dictionary)
        texts = self.texts([key for key, _ in items])
        matches = (value for (_, value), text in zip(items, texts, strict=True) if text == name)
        return next(matches, 0)

    def _dict_parts(self, dictionaries: Sequence[int]) -> list[_Attributes | None]:
        header = self._layout.header
        size = header + 32  # used, version, keys, values
        parts: list[_Attributes | None] = []
        for data in self._read_many([(address or 1, size) for address in dictionaries]):
            if len(data) < size or _WORD.unpack_from(data, header - 8)[0] != self.types.dictionary:
                parts.append(None)
                continue
            keys, values = struct.unpack_from("=QQ", data, header + 16)
            parts.append(_Attributes(keys, values + self._layout.values_at if values else 0))
        return parts

    def _keys(self, tables: Iterable[int]) -> dict[int, _Keys]:
        """Return the sound ones of some tables of keys by address."""
        tables = [table for table in dict.fromkeys(tables) if table]
        layout = _OLD_KEYS if self._layout.old_keys else _KEYS
        data = self._read_many([(table, layout.size) for table in tables])
        parsed = {
            table: self._parse_keys(table, head)
            for table, head in zip(tables, data, strict=True)
            if len(head) == layout.size
        }
        return {table: keys for table, keys in parsed.items() if keys is not None}

    def _parse_keys(self, table: int, head: bytes) -> _Keys | None:
        if self._layout.old_keys:
            _, size, _, _, count = _OLD_KEYS.unpack(head)
            width = 1 if size <= 0xFF else 2 if size <= 0xFFFF else 4
            entries, kind, entry_size = table + _OLD_KEYS.size + size * width, _GENERAL, 24
        else:
            _, _, log_bytes, kind, _, _, count = _KEYS.unpack(head)
            if log_bytes > 40 or kind > _SPLIT:
                return None
            entries = table + _KEYS.size + (1 << log_bytes)
            entry_size = 24 if kind == _GENERAL else 16
        if not 0 <= count <= _MAX_ENTRIES:
            return None
        return _Keys(entries, entry_size, count, kind == _SPLIT or self._layout.old_keys)

    def _entries(self, keys: _Keys) -> list[tuple[int, int]]:
        """Return keys and values beside each other, as far as the memory can be read."""
        (data,) = self._read_many([(keys.entries, keys.entry_size * keys.length or 1)])
        if len(data) < keys.entry_size * keys.length:
            return []
        entry = "=8xQQ" if keys.entry_size == 24 else "=QQ"
        return list(struct.iter_unpack(entry, data[: keys.entry_size * keys.length]))

    # ---- attributes of instances ----

    def attributes(self, objects: Sequence[int], names: Sequence[str]) -> list[Mapping[str, int]]:
        """Return for each object the addresses of some attributes that its dictionary has."""
        attributes_of = self._find_attributes(objects)
        tables = {where.keys for where in attributes_of if where is not None}
        all_keys = self._keys(tables)
        entries: dict[int, list[tuple[int, int]]] = {}
        for table, keys in all_keys.items():
            if keys.length <= _MAX_OF_INSTANCE:
                entries[table] = self._entries(keys)
        rows = self._rows(entries, names)
        wanted: list[tuple[int, str, int]] = []  # number of the object, name, address of the value
        attributes: list[dict[str, int]] = [{} for _ in objects]
        for number, where in enumerate(attributes_of):
            if where is None or where.keys not in rows:
                continue
            if where.values and not all_keys[where.keys].split:
                continue
            for name, row in rows[where.keys].items():
                if where.values:
                    wanted.append((number, name, where.values + 8 * row))
                else:
                    attributes[number][name] = entries[where.keys][row][1]
        values = self.words([address for _, _, address in wanted])
        for (number, name, _), value in zip(wanted, values, strict=True):
            attributes[number][name] = value
        return [
            {name: value for name, value in values_by_name.items() if value}
            for values_by_name in attributes
        ]

    def _rows(
        self, entries: Mapping[int, Sequence[tuple[int, int]]], names: Sequence[str]
    ) -> dict[int, dict[str, int]]:
        """Return by table of keys: the rows of some names."""
        objects = list({key for table in entries.values() for key, _ in table if key})
        texts = dict(zip(objects, self.texts(objects), strict=True))
        return {
            table: {
                text: row
                for row, (key, _) in enumerate(rows)
                if (text := texts.get(key)) is not None and text in names
            }
            for table, rows in entries.items()
        }

    def _find_attributes(self, objects: Sequence[int]) -> list[_Attributes | None]:
        """Return where the attributes of instances of classes lie."""
        types = self.types_of(objects)
        by_type = {type_: self._shape(type_) for type_ in dict.fromkeys(types) if type_}
        shapes = [by_type.get(type_) for type_ in types]
        wanted = [
            pointer
            for address, shape in zip(objects, shapes, strict=True)
            for pointer in (self._pointers(address, shape) if shape is not None else (0, 0))
        ]
        words = iter(self.words(wanted))
        attributes_of: list[_Attributes | None] = [None] * len(objects)
        own_dicts: dict[int, int] = {}  # by number of the object: its dictionary
        for number, (address, shape) in enumerate(zip(objects, shapes, strict=True)):
            first, second = next(words), next(words)
            if shape is None:
                continue
            dictionary, values = self._dict_or_values(address, shape, first, second)
            if dictionary:
                own_dicts[number] = dictionary
            elif values:
                attributes_of[number] = _Attributes(shape.cached_keys, values)
        parts = self._dict_parts(list(own_dicts.values()))
        for number, part in zip(own_dicts, parts, strict=True):
            attributes_of[number] = part
        return attributes_of

    def _shape(self, type_: int) -> _Shape | None:
        layout = self._layout
        base = type_ + layout.header + 8  # behind PyVarObject
        basic_size, flags, dict_offset, cached_keys = self.words([
            base + 8, base + 144, base + 264, base + layout.cached_keys_at,
        ])  # fmt: skip
        if not flags & HEAP_TYPE:
            return None
        return _Shape(basic_size, flags, dict_offset, cached_keys)

    def _pointers(self, address: int, shape: _Shape) -> tuple[int, int]:
        """Return the addresses of two words that say where the attributes of an instance lie."""
        if not shape.flags & MANAGED_DICT:
            return (address + shape.dict_offset if 0 < shape.dict_offset < _MAX_SIZE else 0), 0
        if self._layout.version == (3, 11):
            return address - 32, address - 24
        return address + self._layout.managed_dict_at, address + min(shape.basic_size, _MAX_SIZE)

    def _dict_or_values(
        self, address: int, shape: _Shape, first: int, second: int
    ) -> tuple[int, int]:
        """Return the address of an instance's dictionary, or of the first of its values.

        ``first`` and ``second`` are the words of `_pointers()`.
        """
        layout = self._layout
        if not shape.flags & MANAGED_DICT:
            return first, 0
        if layout.version == (3, 11):
            return (0, first) if first else (second, 0)
        if layout.version == (3, 12):
            return (0, first + 1) if first & 1 else (first, 0)
        if first or not shape.flags & INLINE_VALUES:
            return first, 0
        is_valid = second >> 24 & 0xFF
        return 0, address + shape.basic_size + layout.values_at if is_valid else 0


class _Shape(NamedTuple):
    """The part of a class that its instances are read by."""

    basic_size: int
    flags: int
    dict_offset: int
    cached_keys: int


def _decode(data: bytes, kind: int, wanted: int) -> str | None:
    if len(data) < wanted:
        return None
    return data.decode(_ENCODINGS[kind], "replace")
