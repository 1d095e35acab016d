"""A profile for pprof, as Go's mutex profile: contentions/count and delay/nanoseconds.

The layout is ``profile.proto`` of github.com/google/pprof. No package writes it, so its messages
are written here: a field is a varint of its number and wire type, then a varint or bytes
(protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from locktop.collector.extensions.export.frame_words import NO_STACK, function_name
from locktop.collector.model import Frame
from locktop.collector.sanitize import clean

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.wait_samples import WaitSample

# Numbers of the fields of Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _DEFAULT_TYPE = 9, 10, 11, 12, 14

#: Pyroscope refuses labels of more than 2,048 bytes. A character has 4 bytes at most.
_MAX_LABEL = 500
_UNKNOWN = (Frame(address=0, function=NO_STACK, file=None, line=None, module="", offset=0),)


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the profile, packed with gzip. Raises LocktopError if the waits cannot be read."""
    yield gzip.compress(_ProfileWriter(export_input.build_ids).render(export_input), mtime=0)


class _ProfileWriter:
    def __init__(self, build_ids: Mapping[str, str]) -> None:
        self._build_ids = build_ids
        self._strings = {"": 0}
        self._parts: list[bytes] = []
        self._mappings: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Frame, int] = {}

    def render(self, export_input: ExportInput) -> bytes:
        # The first mapping is that of the main program, as readers expect.
        main = (
            export_input.snapshot.process.exe.rpartition("/")[2]
            or export_input.snapshot.process.comm
        )
        self._mapping(main)
        for name, unit in (("contentions", "count"), ("delay", "nanoseconds")):
            self._parts.append(_bytes(_SAMPLE_TYPE, self._value_type(name, unit)))
        for sample in export_input.samples:
            self._parts.append(_bytes(_SAMPLE, self._sample(sample)))
        self._parts.append(_bytes(_PERIOD_TYPE, self._value_type("contentions", "count")))
        self._parts.append(_number(_PERIOD, 1))
        self._parts.append(_number(_DEFAULT_TYPE, self._string("delay")))
        self._parts.append(_number(_TIME, _time_ns(export_input.snapshot.taken_at)))
        self._parts.append(_number(_DURATION, export_input.duration_ns))
        strings = [_bytes(_STRING, text.encode("utf-8", "replace")) for text in self._strings]
        return b"".join([*self._parts, *strings])

    def _value_type(self, name: str, unit: str) -> bytes:
        return _number(1, self._string(name)) + _number(2, self._string(unit))

    def _sample(self, sample: WaitSample) -> bytes:
        labels = {"lock": sample.lock, "kind": sample.kind, "thread": sample.thread}
        return b"".join([
            _pack(1, [self._location(frame) for frame in sample.frames or _UNKNOWN]),
            _pack(2, [sample.count, sample.ns]),
            *[
                _bytes(3, _number(1, self._string(key)) + _number(2, self._string(short)))
                for key, text in labels.items()
                if (short := clean(text, _MAX_LABEL))
            ],
        ])  # fmt: skip

    def _location(self, frame: Frame) -> int:
        number = self._locations.get(frame)
        if number is None:
            number = self._locations[frame] = len(self._locations) + 1
            line = _number(1, self._function(frame)) + _number(2, frame.line or 0)
            mapping = self._mapping(frame.module) if frame.module else 0
            entry = _number(1, number) + _number(2, mapping) + _number(3, frame.address)
            self._parts.append(_bytes(_LOCATION, entry + _bytes(4, line)))
        return number

    def _function(self, frame: Frame) -> int:
        name, path = function_name(frame), frame.path
        number = self._functions.get((name, path))
        if number is None:
            number = self._functions[name, path] = len(self._functions) + 1
            text = self._string(name)
            entry = _number(1, number) + _number(2, text) + _number(3, text)
            self._parts.append(_bytes(_FUNCTION, entry + _number(4, self._string(path))))
        return number

    def _mapping(self, module: str) -> int:
        number = self._mappings.get(module)
        if number is None:
            number = self._mappings[module] = len(self._mappings) + 1
            entry = _number(1, number) + _number(5, self._string(module))
            build_id = self._build_ids.get(module, "")
            entry += _number(6, self._string(build_id)) if build_id else b""
            # has_functions, has_filenames, has_line_numbers, has_inline_frames
            flags = b"".join(_number(field, 1) for field in (7, 8, 9, 10))
            self._parts.append(_bytes(_MAPPING, entry + flags))
        return number

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


def _time_ns(taken_at: str) -> int:
    try:
        return round(datetime.fromisoformat(taken_at).timestamp() * 1000) * 1_000_000
    except ValueError:
        return 0


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number) if number else b""


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _pack(field: int, numbers: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, numbers)))
