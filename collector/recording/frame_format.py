"""The frames of a recording and of a stream: a header with a checksum, then the payload.

docs/internals/recording.md describes the format. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

import zstandard
from msgspec import Struct

from locktop.collector.errors import LocktopError

#: A file begins with these bytes, the version (u16) and 0 (u16).
MAGIC = b"LOCKTOP\n"
VERSION = 1
FILE_HEADER = struct.Struct("<8sHH")
#: sync, type, 0, bytes stored, bytes unpacked, nanoseconds since 1970, CRC-32.
_HEADER = struct.Struct("<4sBxHIIqI")
HEADER_SIZE = _HEADER.size
_SYNC = b"LTFR"
_CRC_AT = HEADER_SIZE - 4
#: A snapshot of 10,000 busy threads has some 20 MB, and a million ring records have 64 MB. A
#: stranger's snapshot may take some 8 times its bytes when it is decoded.
MAX_UNPACKED = 72 << 20
MAX_STORED = 80 << 20
#: A stored byte unpacks to so many bytes at most, beside these few and those of the snapshot
#: before. Locks or threads that differ in their ids alone unpack to some 260 bytes for each byte.
_MAX_RATIO, _ANY_RATIO = 1024, 1 << 20
#: The same for frames that are not packed.
MAX_PLAIN = 1 << 20
#: Payloads up to so many bytes are packed at a level of zstd that saves 7 % more, in some 0.2 ms.
_SMALL, _LEVEL_OF_SMALL = 256 << 10, 9


class FrameType(IntEnum):
    """The type of a frame decides its payload."""

    INFO = 1  # msgpack: recording_info.RecordingInfo
    KEY = 2  # a snapshot (snapshot_payload.py), packed with zstd
    CHANGE = 3  # the same, packed with the snapshot before it as the dictionary
    SLOTS = 4  # msgpack, packed with zstd: slot_batch.SlotBatch
    NOTABLES = 5  # msgpack: a list of model.Notable
    INDEX = 6  # msgpack: frame_index.IndexPart
    END = 7  # msgpack: why the recording ended, a text


_PACKED = frozenset({FrameType.KEY, FrameType.CHANGE, FrameType.SLOTS})
_PLAIN = frozenset(FrameType) - _PACKED


class FrameHeader(Struct, frozen=True, gc=False):
    """The header of one frame, from a file that may be damaged: it promises nothing yet."""

    type: int
    stored: int  # bytes of the payload behind the header
    unpacked: int  # bytes of the payload when unpacked; of a frame that is not packed, ``stored``
    time_ns: int
    checksum: int


def pack(type_: FrameType, payload: bytes, unpacked: int, time_ns: int) -> bytes:
    """Return a whole frame.

    Args:
        type_: the type.
        payload: the bytes as they are stored, which are packed already if the type says so.
        unpacked: the number of bytes before packing.
        time_ns: nanoseconds since 1970, UTC.
    """
    head = _HEADER.pack(_SYNC, type_, 0, len(payload), unpacked, time_ns, 0)[:_CRC_AT]
    return b"".join((head, struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))), payload))


def parse_header(data: bytes) -> FrameHeader:
    """Return the header at the begin of ``data``, at least HEADER_SIZE bytes.

    Raises:
        LocktopError: no frame begins here, or its sizes are impossible.
    """
    sync, type_, flags, stored, unpacked, time_ns, checksum = _HEADER.unpack_from(data)
    if sync != _SYNC or flags or stored > MAX_STORED or unpacked > MAX_UNPACKED or time_ns < 0:
        raise LocktopError("damaged: no frame begins here")
    if type_ in _PLAIN and (stored > MAX_PLAIN or stored != unpacked):
        raise LocktopError("damaged: a frame has an impossible size")
    return FrameHeader(type_, stored, unpacked, time_ns, checksum)


def check(header: FrameHeader, head: bytes, payload: bytes) -> None:
    """Raise LocktopError if the checksum is wrong.

    Args:
        header: the header.
        head: the bytes of the header.
        payload: the stored payload.
    """
    if zlib.crc32(payload, zlib.crc32(head[:_CRC_AT])) != header.checksum:
        raise LocktopError("damaged: a frame has a wrong checksum")


def unpack(stored: bytes, unpacked: int, before: bytes | None = None) -> bytes:
    """Return the payload of a packed frame.

    Args:
        stored: the bytes of the frame.
        unpacked: how many bytes the header announces.
        before: the unpacked payload of the snapshot before, for a CHANGE.

    Raises:
        LocktopError: the bytes are damaged.
    """
    if unpacked > _ANY_RATIO + _MAX_RATIO * len(stored) + len(before or b""):
        raise LocktopError("damaged: a frame promises far more than it has")
    try:
        # The frame names its size, so that zstd allocates no more.
        if zstandard.frame_content_size(stored) != unpacked:
            raise LocktopError("damaged: a frame has another size than its header says")
        words = _dictionary(before) if before is not None else None
        unpacker = zstandard.ZstdDecompressor(dict_data=words, max_window_size=2 * MAX_UNPACKED)
        return unpacker.decompress(stored, max_output_size=unpacked)
    except zstandard.ZstdError as error:
        raise LocktopError(f"damaged: {error}") from None


def packed(payload: bytes, before: bytes | None = None) -> bytes:
    """Return a payload packed with zstd; with ``before``, only what differs from that payload."""
    is_small = len(payload) <= _SMALL
    if before is None:
        level = _LEVEL_OF_SMALL if is_small else 1
        return _exact(zstandard.ZstdCompressor(level=level).compress(payload))
    window = max(10, min(27, (len(before) + len(payload)).bit_length()))
    if is_small:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL_OF_SMALL, window_log=window, source_size=len(before) + len(payload)
        )
    else:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            1, window_log=window, hash_log=min(18, window)
        )
    packer = zstandard.ZstdCompressor(compression_params=parameters, dict_data=_dictionary(before))
    return _exact(packer.compress(payload))


def _exact(data: bytes) -> bytes:
    """Return a copy that takes no more memory than its length.

    The result of zstandard keeps the memory for the longest possible result.
    """
    return bytes(memoryview(data))


def _dictionary(before: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
