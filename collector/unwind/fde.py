"""Entries of .eh_frame and .debug_frame: which function, and where its instructions are.

pyelftools makes objects of all entries of a section before it tells of one; here an entry is read
when it is asked for, straight from its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from locktop.collector.symbols.dwarf.abbrevs import leb, sleb
from locktop.collector.unwind import pointer_encodings
from locktop.collector.unwind.cfi_program import Common

#: Bytes; those of the largest real functions have some tens of thousands.
_LONGEST = 256 << 10
#: Of a section in which each must be looked at.
_MAX_ENTRIES = 1 << 20
_READ_AT_ONCE = 256  # most entries are shorter
_PERSONALITY, _LSDA, _ENCODING, _SIGNAL = b"PLRS"
_NOTHING_ELSE = b"BG"  # aarch64: signed with the other key; tagged stack


class Frames(NamedTuple):
    """A section. Places in it are its own addresses where it is loaded, else offsets."""

    read: Callable[[int, int], bytes]  # up to so many bytes at a place
    begin: int
    end: int
    is_loaded: bool  # .eh_frame, not .debug_frame: the two count differently


class Function(NamedTuple):
    """An FDE: the addresses that it is of, and what is to be run for them."""

    common: Common
    start: int
    end: int
    instructions: bytes
    place: int


class _Raw(NamedTuple):
    data: bytes  # behind the length
    place: int  # of data[0]
    common: int | None  # where its CIE is; None: it is one
    content: int  # where in data what both have in common ends
    offset_size: int


class Entries:
    """Reads entries of one section; what many refer to is kept."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._commons: dict[int, Common] = {}

    def function(self, place: int) -> Function:
        """Return the FDE at a place; ValueError where there is none, or a damaged one."""
        raw, _ = self._raw(place)
        if raw is None or raw.common is None:
            raise ValueError("no function's entry")
        return self._function(raw, raw.common)

    def all(self) -> Iterator[tuple[int, int]]:
        """Give each FDE's first address and place, as far as they are sound."""
        place = self._frames.begin
        for _ in range(_MAX_ENTRIES):
            if place >= self._frames.end:
                return
            try:
                raw, after = self._raw(place)
                if raw is not None and raw.common is not None:
                    yield self._function(raw, raw.common).start, place
            except (ValueError, IndexError):
                return
            place = after

    def _raw(self, place: int) -> tuple[_Raw | None, int]:
        """An entry, None for the mark at the end of a part, and where the next one is."""
        head = self._read(place, _READ_AT_ONCE)
        size, at, offset_size = int.from_bytes(head[:4], "little"), 4, 4
        if size == 0xFFFF_FFFF:
            size, at, offset_size = int.from_bytes(head[4:12], "little"), 12, 8
        if len(head) < at or size > _LONGEST:
            raise ValueError("an entry is cut off or longer than is sane")
        if not size:
            return None, place + at
        body = head[at : at + size]
        if len(body) < size:
            body = self._read(place + at, size)
        if len(body) < max(size, offset_size):
            raise ValueError("an entry is cut off")
        if self._frames.is_loaded:
            offset_size = 4
        value = int.from_bytes(body[:offset_size], "little")
        if self._frames.is_loaded:
            common = place + at - value if value else None
        else:
            common = None if value == (1 << 8 * offset_size) - 1 else self._frames.begin + value
        return _Raw(body, place + at, common, offset_size, offset_size), place + at + size

    def _read(self, place: int, size: int) -> bytes:
        if not self._frames.begin <= place < self._frames.end:
            raise ValueError("an entry lies outside of its section")
        return self._frames.read(place, min(size, self._frames.end - place))

    def _function(self, raw: _Raw, place: int) -> Function:
        common = self._common(place)
        data, at = raw.data, raw.content
        start, at = pointer_encodings.pointer(data, at, common.encoding, raw.place)
        length, at = pointer_encodings.size(data, at, common.encoding)
        if common.augmented:
            length_of_data, at = leb(data, at)
            at += length_of_data
        if at > len(data):
            raise ValueError("an entry is cut off")
        return Function(common, start, start + length, data[at:], raw.place + at)

    def _common(self, place: int) -> Common:
        common = self._commons.get(place)
        if common is None:
            raw, _ = self._raw(place)
            if raw is None or raw.common is not None:
                raise ValueError("an entry refers to one of another kind")
            try:
                common = self._commons[place] = _common(raw)
            except IndexError:
                raise ValueError("an entry is cut off") from None
        return common


def _common(raw: _Raw) -> Common:
    data, at = raw.data, raw.content
    version = data[at]
    if version not in (1, 3, 4):
        raise ValueError(f"version {version} of call frame information is not known")
    end = data.index(0, at + 1)
    augmentation, at = data[at + 1 : end], end + 1
    if version == 4:
        if data[at] != 8 or data[at + 1]:
            raise ValueError("addresses of another size, or in segments")
        at += 2
    code_step, at = leb(data, at)
    data_step, at = sleb(data, at)
    returns, at = (data[at], at + 1) if version == 1 else leb(data, at)
    encoding, augmented = 0, augmentation[:1] == b"z"
    if augmented:
        size, at = leb(data, at)
        encoding = _augmentation(augmentation[1:], data[: at + size], at, raw.place)
        at += size
    elif augmentation:
        raise ValueError("an augmentation that is not known")
    if at > len(data):
        raise ValueError("an entry is cut off")
    is_signal = _SIGNAL in augmentation
    return Common(
        code_step, data_step, returns, encoding, is_signal, augmented, data[at:], raw.place + at
    )


def _augmentation(letters: bytes, data: bytes, at: int, place: int) -> int:
    """Return how addresses are encoded."""
    encoding = 0
    for letter in letters:
        if letter == _ENCODING:
            encoding, at = data[at], at + 1
        elif letter == _LSDA:
            at += 1
        elif letter == _PERSONALITY:
            at = pointer_encodings.skipped(data, at + 1, data[at], place)
        elif letter != _SIGNAL and letter not in _NOTHING_ELSE:
            raise ValueError("an augmentation that is not known")
    return encoding
