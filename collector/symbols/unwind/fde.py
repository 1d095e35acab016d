"""Entries of .eh_frame and .debug_frame, each parsed when its function is on a stack.

An entry is a CIE (what many functions have in common) or an FDE (one function). pyelftools parses
an entry from a stream that holds the entry alone: a forged length or pointer leads nowhere else.
The scan of a section without a table reads only what it needs (docs/internals/adr/0002).
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.dwarf.callframe import CIE, FDE, CallFrameInfo, CallFrameInstruction
from elftools.dwarf.structs import DWARFStructs

from locktop.collector.symbols.unwind import pointer_encodings

if TYPE_CHECKING:
    from elftools.dwarf.callframe import CFIEntry

#: Bytes of one entry; those of the largest real functions have some tens of thousands.
_MAX_ENTRY = 256 << 10
#: pyelftools reads numbers of any length, in time that grows with the square of it.
_TOO_LONG_NUMBER = re.compile(rb"[\x80-\xff]{1024}")
#: Entries of a section that is scanned.
_MAX_ENTRIES = 1 << 20
_CONTENT = 8  # bytes of the length and of the pointer to the CIE
_READ_SIZE = 256  # most entries are shorter
_VERSIONS = (1, 3, 4)
_AUGMENTATIONS = frozenset(b"zPLRSBG")  # B, G: of aarch64, without data
_ENCODING_KEY = "FDE_encoding"
_STRUCTS = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)


class FrameSection(NamedTuple):
    """A section of entries. Positions are addresses if it is loaded, else offsets."""

    read: Callable[[int, int], bytes]  # up to so many bytes at a position
    begin: int
    end: int
    is_loaded: bool  # .eh_frame, not .debug_frame: the two count differently


class CommonEntry(NamedTuple):
    """A CIE."""

    code_factor: int
    data_factor: int
    return_register: int  # it holds the return address
    encoding: int  # of addresses in its FDEs (DW_EH_PE_*)
    is_signal: bool  # of frames that the kernel makes
    instructions: list[CallFrameInstruction]
    parsed: CIE


class FunctionEntry(NamedTuple):
    """An FDE: a range of addresses and the instructions for them."""

    common: CommonEntry
    start: int
    end: int
    instructions: list[CallFrameInstruction]


class _RawEntry(NamedTuple):
    data: bytes  # with the length
    position: int
    common: int | None  # the position of its CIE; None: the entry is a CIE
    content: int  # where in data the fields of a CIE or of an FDE begin


class FrameEntries:
    """Reads the entries of one section; CIEs are kept."""

    def __init__(self, section: FrameSection) -> None:
        self._section = section
        self._commons: dict[int, CommonEntry] = {}

    def function(self, position: int) -> FunctionEntry:
        """Return the FDE at a position.

        Raises:
            ValueError: There is none, or it is damaged.
        """
        raw, _ = self._raw(position)
        if raw is None or raw.common is None:
            raise ValueError("no function's entry")
        common = self._common(raw.common)
        with _convert_errors():
            parsed = self._parse(raw, common.parsed)
            start = int(parsed["initial_location"]) % pointer_encodings.ADDRESS_LIMIT
            size = int(parsed["address_range"])
            return FunctionEntry(common, start, start + size, parsed.instructions)

    def starts(self) -> Iterator[tuple[int, int]]:
        """Yield the first address and the position of each FDE, up to a damaged entry."""
        position = self._section.begin
        for _ in range(_MAX_ENTRIES):
            if position >= self._section.end:
                return
            try:
                raw, after = self._raw(position)
                if raw is not None and raw.common is not None:
                    encoding = self._common(raw.common).encoding
                    start, _ = pointer_encodings.pointer(
                        raw.data, raw.content, encoding, raw.position
                    )
                    yield start, position
            except (ValueError, IndexError):
                return
            position = after

    def _common(self, position: int) -> CommonEntry:
        common = self._commons.get(position)
        if common is None:
            raw, _ = self._raw(position)
            if raw is None or raw.common is not None:
                raise ValueError("an entry refers to one of another kind")
            with _convert_errors():
                common = _common_entry(self._parse(raw), is_loaded=self._section.is_loaded)
            self._commons[position] = common
        return common

    def _parse(self, raw: _RawEntry, common: CIE | None = None) -> CFIEntry:
        # Without an augmentation an FDE of .eh_frame has the form of .debug_frame.
        is_eh_frame = self._section.is_loaded
        if common is not None:
            is_eh_frame = bool(common.header["augmentation"])
        (entry,) = _OneEntry(raw, common, is_eh_frame=is_eh_frame).get_entries()
        assert isinstance(entry, FDE if common is not None else CIE)
        return entry

    def _raw(self, position: int) -> tuple[_RawEntry | None, int]:
        """Return an entry, None for the mark at the end of a part, and the next position."""
        data = self._read(position, _READ_SIZE)
        size, content = int.from_bytes(data[:4], "little"), 4
        is_wide = size == 0xFFFF_FFFF
        if is_wide:
            size, content = int.from_bytes(data[4:12], "little"), 12
        if len(data) < content or size > _MAX_ENTRY:
            raise ValueError("an entry is cut off or longer than is sane")
        if not size:
            return None, position + content
        end = content + size
        data = data[:end] if len(data) >= end else self._read(position, end)
        pointer_size = 8 if is_wide and not self._section.is_loaded else 4
        if len(data) < max(end, content + pointer_size):
            raise ValueError("an entry is cut off")
        if _TOO_LONG_NUMBER.search(data):
            raise ValueError("a number is too long")
        value = int.from_bytes(data[content : content + pointer_size], "little")
        if self._section.is_loaded:
            common = position + content - value if value else None
        else:
            is_common = value == (1 << 8 * pointer_size) - 1
            common = None if is_common else self._section.begin + value
        if is_wide:  # pyelftools fails at the 64-bit form: make it a 32-bit entry 8 bytes later
            data = data[content : content + 4] + data[content + pointer_size :]
            data, begin = struct.pack("<I", len(data)) + data, position + 8
        else:
            begin = position
        return _RawEntry(data, begin, common, _CONTENT), position + end

    def _read(self, position: int, size: int) -> bytes:
        if not self._section.begin <= position < self._section.end:
            raise ValueError("an entry lies outside of its section")
        return self._section.read(position, min(size, self._section.end - position))


class _OneEntry(CallFrameInfo):
    """pyelftools's reader over one entry, with the CIE that was parsed before."""

    def __init__(self, raw: _RawEntry, common: CIE | None, *, is_eh_frame: bool) -> None:
        stream = io.BytesIO(raw.data)
        super().__init__(stream, len(raw.data), raw.position, _STRUCTS, is_eh_frame)
        self._common = common

    def _parse_cie_for_fde(self, *_: Any) -> CIE:
        assert self._common is not None
        return self._common


def _common_entry(parsed: CFIEntry, *, is_loaded: bool) -> CommonEntry:
    assert isinstance(parsed, CIE)
    header, augmentation = parsed.header, parsed.header["augmentation"]
    if header["version"] not in _VERSIONS:
        raise ValueError(f"version {header['version']} of call frame information is not known")
    if header["version"] == 4 and (header["address_size"] != 8 or header["segment_size"]):
        raise ValueError("addresses of another size, or in segments")
    is_known = is_loaded and augmentation[:1] == b"z" and not set(augmentation) - _AUGMENTATIONS
    if augmentation and not is_known:
        raise ValueError("an augmentation that is not known")
    encoding = parsed.augmentation_dict.setdefault(_ENCODING_KEY, pointer_encodings.ABSOLUTE)
    assert isinstance(encoding, int)
    if encoding & 0xF0 not in (pointer_encodings.ABSOLUTE, pointer_encodings.FROM_HERE):
        raise ValueError(f"pointers of encoding {encoding:#x} are not known")
    return CommonEntry(
        code_factor=header["code_alignment_factor"],
        data_factor=header["data_alignment_factor"],
        return_register=header["return_address_register"],
        encoding=encoding,
        is_signal=b"S" in augmentation,
        instructions=parsed.instructions,
        parsed=parsed,
    )


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn what pyelftools raises for damaged bytes into ValueError."""
    try:
        yield
    except (
        ELFError, DWARFError, ConstructError, AssertionError, AttributeError, LookupError,
        OverflowError, TypeError,
    ) as error:  # fmt: skip
        raise ValueError(f"a damaged entry: {error}") from None
