"""Compressed parts of ELF files, unpacked to a bounded size: a forged one eats no memory."""

from __future__ import annotations

import lzma
import struct
import zlib

_OLD_MAGIC = b"ZLIB"  # of .zdebug sections, before ELF knew compressed ones
_OLD_HEADER = len(_OLD_MAGIC) + 8
#: What a decompressor may take for itself; `xz -9` needs 65 MB.
_MAX_WINDOW = 128 << 20


def unzlib(data: bytes, size: int) -> bytes:
    """Return what a zlib stream holds; ValueError unless that is ``size`` bytes."""
    try:
        found = zlib.decompressobj().decompress(data, size) if size else b""
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None
    return _whole(found, size)


def unzstd(data: bytes, size: int) -> bytes:
    """Return what a zstd frame holds; ValueError unless that is ``size`` bytes."""
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(data)
    try:
        return _whole(reader.read(size), size)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged: {error}") from None


def unxz(data: bytes, most: int) -> bytes:
    """Return what an xz stream holds; ValueError if that is more than ``most`` bytes."""
    try:
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_WINDOW)
        found = decompressor.decompress(data, most + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"damaged: {error}") from None
    if len(found) > most or not decompressor.eof:
        raise ValueError("too large, or cut off")
    return found


def old_size(head: bytes) -> int:
    """Return the unpacked size told by the first bytes of a .zdebug section."""
    if len(head) < _OLD_HEADER or not head.startswith(_OLD_MAGIC):
        raise ValueError("no compressed section")
    return int(struct.unpack_from(">Q", head, len(_OLD_MAGIC))[0])


def unzdebug(data: bytes) -> bytes:
    """Return what a .zdebug section holds; the caller has asked for its size."""
    return unzlib(data[_OLD_HEADER:], old_size(data))


def _whole(found: bytes, size: int) -> bytes:
    if len(found) != size:
        raise ValueError(f"{len(found)} bytes instead of {size}")
    return found
