"""The line table of a unit: the source line of each instruction (docs/internals/adr/0001)."""

from __future__ import annotations

import posixpath
from array import array
from typing import NamedTuple

from locktop.collector.symbols.dwarf.abbrevs import (
    FORM_LINE_STRP,
    FORM_STRING,
    FORM_STRP,
    Layout,
    leb,
    sleb,
)
from locktop.collector.symbols.dwarf.sections import DebugSections

_MAX_PROGRAM = 64 << 20  # bytes
_MAX_FILES = 100_000
_PATH, _DIRECTORY = 1, 2  # DW_LNCT_*
_BLOCK = 0x09
_END_SEQUENCE, _SET_ADDRESS = 1, 2  # DW_LNE_*


class Lines(NamedTuple):
    """Rows sorted by address; each holds until the next. Line 0 is no line."""

    addresses: array[int]
    files: array[int]  # indexes into names
    lines: array[int]
    names: list[str]  # of the files, with the directories that the compiler wrote

    @classmethod
    def none(cls) -> Lines:
        """Return a table without rows."""
        return cls(array("Q"), array("I"), array("I"), [])


class _LineHeader(NamedTuple):
    program_offset: int  # offset of the program
    min_instruction: int
    line_base: int
    line_range: int
    opcode_base: int
    operands: bytes  # their number, by standard opcode
    names: list[str]
    version: int


def read_lines(sections: DebugSections, offset: int, compiled_in: bytes = b"") -> Lines:
    """Return the table at an offset in .debug_line.

    Args:
        sections: of the file.
        offset: of the table.
        compiled_in: the directory of the compiler, to which relative paths belong.

    Raises:
        ValueError, IndexError, struct.error: The table is damaged.
    """
    size, position = sections.number("line", offset, 4), 4
    offset_size = 4
    if size == 0xFFFFFFFF:
        size, position, offset_size = sections.number("line", offset + 4, 8), 12, 8
    if size > _MAX_PROGRAM:
        raise ValueError("a line table is larger than is sane")
    data = sections.read("line", offset, position + size)
    header = _header(sections, data, position, offset_size, compiled_in)
    return _sort_sequences(_run(data, header), header.names)


def _header(
    sections: DebugSections, data: bytes, position: int, offset_size: int, compiled_in: bytes
) -> _LineHeader:
    version = int.from_bytes(data[position : position + 2], "little")
    position += 2
    address_size = 8
    if not 2 <= version <= 5:
        raise ValueError(f"version {version} of line tables is not known")
    if version >= 5:
        address_size = data[position]
        position += 2
    begins = (
        position + offset_size + int.from_bytes(data[position : position + offset_size], "little")
    )
    position += offset_size
    min_instruction = data[position]
    position += 2 if version >= 4 else 1  # operations of an instruction, for VLIW machines
    line_base = data[position + 1] - 256 if data[position + 1] >= 128 else data[position + 1]
    line_range, opcode_base = data[position + 2], data[position + 3]
    position += 4
    operands = b"\0" + data[position : position + opcode_base - 1]
    position += opcode_base - 1
    if not line_range or not opcode_base:
        raise ValueError("a line table is damaged")
    if version >= 5:
        layout = Layout(version, address_size, offset_size)
        entries, position = _table(sections, data, position, layout)
        directories = [path for path, _ in entries]
        files, position = _table(sections, data, position, layout)
    else:
        directories, files = _old_tables(data, position)
    names = [_path(compiled_in, directories, name, directory) for name, directory in files]
    return _LineHeader(
        begins, min_instruction, line_base, line_range, opcode_base, operands, names, version
    )


def _old_tables(data: bytes, position: int) -> tuple[list[bytes], list[tuple[bytes, int]]]:
    """Return directories, and files as _table() does; before version 5 both count from 1."""
    directories = [b""]  # that of the compiler
    while data[position]:
        end = data.index(0, position)
        directories.append(data[position:end])
        position = end + 1
    position += 1
    files: list[tuple[bytes, int]] = [(b"", 0)]
    while data[position] and len(files) < _MAX_FILES:
        end = data.index(0, position)
        directory, after = leb(data, end + 1)
        files.append((data[position:end], directory))
        position = after
        for _ in range(2):  # time, size
            _, position = leb(data, position)
    return directories, files


def _table(
    sections: DebugSections, data: bytes, position: int, layout: Layout
) -> tuple[list[tuple[bytes, int]], int]:
    """Return paths, each with the number of its directory, and the offset behind them."""
    fields = []
    count, position = data[position], position + 1
    for _ in range(count):
        content, position = leb(data, position)
        form, position = leb(data, position)
        fields.append((content, form))
    count, position = leb(data, position)
    if count > _MAX_FILES:
        raise ValueError("a line table has too many files")
    paths = []
    for _ in range(count):
        path, directory = b"", 0
        for content, form in fields:
            value, position = _value(sections, data, position, form, layout)
            if content == _PATH and isinstance(value, bytes):
                path = value
            elif content == _DIRECTORY and isinstance(value, int):
                directory = value
        paths.append((path, directory))
    return paths, position


def _value(
    sections: DebugSections, data: bytes, position: int, form: int, layout: Layout
) -> tuple[bytes | int, int]:
    """Return the text or the number of a value, b"" for other bytes, and the offset behind it."""
    if form == FORM_STRING:
        end = data.index(0, position)
        return data[position:end], end + 1
    if form == _BLOCK:
        length, position = leb(data, position)
        return b"", position + length
    size = layout.size(form)
    if size < 0:
        return leb(data, position)
    number = int.from_bytes(data[position : position + size], "little")
    if form in (FORM_LINE_STRP, FORM_STRP):
        return sections.string(
            "line_str" if form == FORM_LINE_STRP else "str", number
        ), position + size
    return number, position + size


def _path(compiled_in: bytes, directories: list[bytes], name: bytes, directory: int) -> str:
    """Return the path of a file. Its directory may be relative to the one of the compiler."""
    within = directories[directory] if directory < len(directories) else b""
    path = posixpath.join(compiled_in, within, name) if name else b""
    return path.decode("utf-8", "replace")


class _Sequence(NamedTuple):
    low: int  # the lowest address
    first: int  # the first row
    end: int  # the row behind the last


class _LineRows(NamedTuple):
    """Rows in columns, in the order of the program."""

    sequences: list[_Sequence]
    addresses: list[int]
    files: list[int]
    lines: list[int]

    def end_sequence(self, first: int, end: int) -> int:
        """End the sequence from row ``first`` at an address; return the next row."""
        self.addresses.append(end)
        self.files.append(0)
        self.lines.append(0)
        next_row = len(self.addresses)
        self.sequences.append(_Sequence(self.addresses[first], first, next_row))
        return next_row


def _run(  # noqa: C901 - one loop without calls: a table has up to 100,000 rows
    data: bytes, header: _LineHeader
) -> _LineRows:
    """Run the program."""
    base, scale, operands = header.opcode_base, header.min_instruction, header.operands
    advances, deltas = _special_opcodes(header)
    rows = _LineRows([], [], [], [])
    addresses, files, lines = rows.addresses, rows.files, rows.lines
    first, address, file, line = 0, 0, 1, 1
    last_file = last_line = -1
    index, end = header.program_offset, len(data)
    while index < end:
        op = data[index]
        index += 1
        if op >= base:
            address += advances[op]
            line += deltas[op]
        elif op == 5:  # the column
            while data[index] >= 0x80:
                index += 1
            index += 1
            continue
        elif op == 6 and not operands[6]:  # whether it is a statement
            continue
        elif op == 3:  # advance the line
            value, index = (data[index], index + 1) if data[index] < 0x40 else sleb(data, index)
            line += value
            continue
        elif op == 2:  # advance the address
            value, index = leb(data, index)
            address += value * scale
            continue
        elif op == 4:
            file, index = leb(data, index)
            continue
        elif op == 8:  # advance the address as opcode 255 does
            address += advances[255]
            continue
        elif op == 9:
            address += int.from_bytes(data[index : index + 2], "little")
            index += 2
            continue
        elif not op:
            kind, value, index = _extended_opcode(data, index)
            if kind == _SET_ADDRESS:
                address = value
            elif kind == _END_SEQUENCE:
                first = rows.end_sequence(first, address)
                address, file, line, last_line = 0, 1, 1, -1
            continue
        elif op != 1:  # 1 is copy; others are not used here
            for _ in range(operands[op]):
                _, index = leb(data, index)
            continue
        if line != last_line or file != last_file:
            addresses.append(address)
            files.append(file)
            lines.append(line)
            last_line, last_file = line, file
    return rows


def _special_opcodes(header: _LineHeader) -> tuple[list[int], list[int]]:
    """Return by opcode by how much a special opcode advances the address, and the line."""
    base, width = header.opcode_base, header.line_range
    special = [max(0, op - base) for op in range(256)]
    advances = [number // width * header.min_instruction for number in special]
    return advances, [header.line_base + number % width for number in special]


def _extended_opcode(data: bytes, position: int) -> tuple[int, int, int]:
    """Return kind and operand of an extended opcode, and the offset behind it."""
    length, position = leb(data, position)
    if not length:
        raise ValueError("a line table is damaged")
    end = position + length
    return (
        data[position],
        int.from_bytes(data[position + 1 : position + 9][: length - 1], "little"),
        end,
    )


def _sort_sequences(rows: _LineRows, names: list[str]) -> Lines:
    """Sort the sequences, without those of discarded code: it lies at address 0."""
    kept = Lines.none()._replace(names=names)
    end = 0
    for low, first, last in sorted(rows.sequences):
        part = rows.addresses[first:last]
        # Addresses rise, else the sequence is damaged.
        if low and low >= end and part[-1] > low and not any(map(int.__gt__, part, part[1:])):
            files, lines = rows.files[first:last], rows.lines[first:last]
            kept.addresses.fromlist(part)
            kept.files.fromlist([file if file < len(names) else 0 for file in files])
            kept.lines.fromlist([n if 0 < n < 1 << 31 else 0 for n in lines])
            end = part[-1]
    return kept
