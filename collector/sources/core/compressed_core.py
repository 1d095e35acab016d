"""Cores that systemd or a user has compressed: unpacked into a private file that ends with us.

zstandard is a dependency already, and Python has xz. For lz4, which systemd wrote before version
246, the program ``lz4`` unpacks the core.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import IO, BinaryIO, Protocol

import zstandard

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.sources.core.core_file import MAGIC

_ZSTD, _XZ, _LZ4 = b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18"
_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)
#: Bytes of the disk that stay free for others.
_LEFT_FREE = 256 << 20
#: Bytes: a window of 128 MiB is the largest that zstd makes without a special option.
_MAX_WINDOW = 128 << 20


class _Stream(Protocol):
    """The unpacked bytes of a file."""

    def read(self, size: int = ..., /) -> bytes: ...

    def close(self) -> None: ...


class _Lz4Stream:
    """The output of the program ``lz4``, which unpacks a file."""

    def __init__(self, file: BinaryIO) -> None:
        os.lseek(file.fileno(), 0, os.SEEK_SET)  # a file object may have read ahead
        self._process = subprocess.Popen(
            ["lz4", "-dc"], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, b"" at the end. Raises EOFError if the file is damaged."""
        data = self._output.read(size)
        if not data and (status := self._process.wait()):
            raise EOFError(f"lz4 ended with status {status}")
        return data

    def close(self) -> None:
        """End the program."""
        self._output.close()
        self._process.kill()
        self._process.wait()


def begins_as_core(file: BinaryIO) -> bool:
    """Return whether a file begins as a core does, perhaps a compressed one."""
    head = file.read(len(_XZ))
    if head.startswith((_ZSTD, _XZ)):
        file.seek(0)
        try:
            with closing(_stream(file, head)) as stream:
                return stream.read(len(MAGIC)) == MAGIC
        except (OSError, EOFError, lzma.LZMAError, zstandard.ZstdError):
            return False
    return head.startswith((MAGIC, _LZ4))


def unpacked(path: str) -> IO[bytes] | None:
    """Return a temporary file with the core; None if the core is not compressed.

    The file has a name until it is closed. Parts of zeros take no room on the disk.

    Raises:
        LocktopError: the core cannot be unpacked, or the disk has no room for it.
    """
    with open(path, "rb") as file:
        head = file.read(len(_XZ))
        file.seek(0)
        if head.startswith(_LZ4) and shutil.which("lz4") is None:
            raise LocktopError(
                f"{path}: the program lz4 is missing, which unpacks it; or use"
                " `coredumpctl dump -o CORE PID`"
            )
        if not head.startswith((_ZSTD, _XZ, _LZ4)):
            return None
        about = os.fstat(file.fileno())
        target = tempfile.NamedTemporaryFile(prefix="locktop-core-")  # noqa: SIM115
        try:
            with closing(_stream(file, head)) as stream:
                _write_sparse(_blocks(stream), target, path)
            if os.geteuid() == 0:
                os.fchown(target.fileno(), about.st_uid, about.st_gid)
            os.utime(target.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
        except (EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
            target.close()
            raise LocktopError(f"{path}: this compressed file is damaged: {error}") from None
        except OSError as error:
            target.close()
            raise LocktopError(f"{path}: it cannot be unpacked: {reason_of(error)}") from None
        except BaseException:
            target.close()
            raise
    return target


def _stream(file: BinaryIO, head: bytes) -> _Stream:
    if head.startswith(_LZ4):
        return _Lz4Stream(file)
    if head.startswith(_XZ):
        return lzma.LZMAFile(file)
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    return decompressor.stream_reader(file, read_across_frames=True, closefd=False)


def _blocks(stream: _Stream) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _write_sparse(blocks: Iterator[bytes], target: IO[bytes], path: str) -> None:
    """Write the blocks; leave a hole for zeros."""
    room = os.statvfs(target.name)
    left = room.f_bavail * room.f_frsize - _LEFT_FREE
    for block in blocks:
        if block == _ZEROS[: len(block)]:
            target.seek(len(block), os.SEEK_CUR)
            continue
        left -= len(block)
        if left < 0:
            raise LocktopError(
                f"{path}: {tempfile.gettempdir()} has no room for the unpacked core; set TMPDIR to"
                " a directory with more room"
            )
        target.write(block)
    target.truncate()
    target.flush()
