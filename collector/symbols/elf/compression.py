"""Compressed parts of ELF files, unpacked to a bounded size: a forged part takes little memory."""

from __future__ import annotations

import lzma
import struct
import zlib

_ZDEBUG_MAGIC = b"ZLIB"  # of .zdebug sections, which are older than SHF_COMPRESSED
_ZDEBUG_HEADER = len(_ZDEBUG_MAGIC) + 8
#: Bytes that a decompressor may allocate for itself; `xz -9` needs 65 MB.
_MAX_WINDOW = 128 << 20


def unpack_zlib(data: bytes, size: int) -> bytes:
    """Return the content of a zlib stream; ValueError unless the content has ``size`` bytes."""
    try:
        content = zlib.decompressobj().decompress(data, size) if size else b""
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None
    return _checked_size(content, size)


def unpack_zstd(data: bytes, size: int) -> bytes:
    """Return the content of a zstd frame; ValueError unless the content has ``size`` bytes."""
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(data)
    try:
        return _checked_size(reader.read(size), size)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged: {error}") from None


def unpack_xz(data: bytes, max_size: int) -> bytes:
    """Return the content of an xz stream; ValueError if it has more than ``max_size`` bytes."""
    try:
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_WINDOW)
        content = decompressor.decompress(data, max_size + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"damaged: {error}") from None
    if len(content) > max_size or not decompressor.eof:
        raise ValueError("too large, or cut off")
    return content


def zdebug_size(head: bytes) -> int:
    """Return the unpacked size that the first bytes of a .zdebug section give."""
    if len(head) < _ZDEBUG_HEADER or not head.startswith(_ZDEBUG_MAGIC):
        raise ValueError("no compressed section")
    return int(struct.unpack_from(">Q", head, len(_ZDEBUG_MAGIC))[0])


def unpack_zdebug(data: bytes) -> bytes:
    """Return the content of a .zdebug section; the caller has checked `zdebug_size()`."""
    return unpack_zlib(data[_ZDEBUG_HEADER:], zdebug_size(data))


def _checked_size(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise ValueError(f"{len(content)} bytes instead of {size}")
    return content
