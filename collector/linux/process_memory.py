"""Reads another process's memory, without a stop or a change of that process."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

from locktop.collector.linux import procfs, saved_process

PAGE = os.sysconf("SC_PAGE_SIZE")
_MAX_PIECES = 1024  # in one call: IOV_MAX


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


# From libc, because Python has no such function. The kernel checks the right at each call. After an
# exec this call reads the new program, while an open /proc/PID/mem would show the old one.
_readv = ctypes.CDLL(None, use_errno=True).process_vm_readv
_readv_at_once = ctypes.PyDLL(None, use_errno=True).process_vm_readv
for _function in (_readv, _readv_at_once):
    _function.restype = ctypes.c_ssize_t
    _function.argtypes = (
        ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong,
        ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
    )  # fmt: skip
# For processes whose first thread has ended: pid -> tid of a living thread.
_living_tids: dict[int, int] = {}


def read(pid: int, address: int, size: int, *, at_once: bool = False) -> bytes:
    """Return up to ``size`` bytes. The result ends at the first page that cannot be read.

    ``at_once``: no other Python thread of this process runs during the read.
    """
    if size <= 0 or not 0 < address < 1 << 63:
        return b""
    saved = saved_process.get(pid)
    if saved is not None:
        return saved.memory(address, size)
    buffer = ctypes.create_string_buffer(size)
    own = _Piece(ctypes.addressof(buffer), size)
    # The kernel reads a piece whole or not at all, so each page is a piece.
    theirs = _pieces(address, size)
    count = _read_pieces(pid, own, theirs, len(theirs), _readv_at_once if at_once else _readv)
    return buffer.raw[:count] if count > 0 else b""


def refusal(pid: int) -> int:
    """Return the error number of a read of the process's memory, 0 if the memory may be read."""
    if saved_process.get(pid) is not None:
        return 0
    buffer = ctypes.create_string_buffer(1)
    own, theirs = _Piece(ctypes.addressof(buffer), 1), (_Piece * 1)(_Piece(1, 1))
    result = _read_pieces(pid, own, theirs, 1)
    # The kernel checks the right before the address.
    return 0 if result in (0, -errno.EFAULT) else -result


def _read_pieces(
    pid: int,
    own: _Piece,
    theirs: ctypes.Array[Any],
    count: int,
    call: Callable[..., int] = _readv,
) -> int:
    """Read ``count`` pieces. Return the number of bytes, or the negative error number."""

    def read_by(tid: int) -> int:
        size = call(tid, ctypes.byref(own), 1, theirs, count, 0)
        return size if size >= 0 else -ctypes.get_errno()

    result = read_by(pid)
    return result if result != -errno.ESRCH else _read_by_living_thread(pid, read_by)


def _read_by_living_thread(pid: int, read_by: Callable[[int], int]) -> int:
    """Read by the id of another thread: the first thread has ended, but the memory lives on."""
    for find in (_living_tids.get, procfs.living):
        tid = find(pid)
        if tid is None or tid == pid:
            continue
        result = read_by(tid)
        # Another process may have the id by now.
        if result != -errno.ESRCH and os.path.exists(f"/proc/{pid}/task/{tid}"):
            _living_tids[pid] = tid
            return result
        _living_tids.pop(pid, None)
    return -errno.ESRCH


def _pieces(address: int, size: int) -> ctypes.Array[_Piece]:
    if address % PAGE + size <= PAGE:
        return (_Piece * 1)(_Piece(address, size))
    bounds = [address, *range(address // PAGE * PAGE + PAGE, address + size, PAGE)]
    ends = [*bounds[1:], address + size]
    pieces = [_Piece(begin, end - begin) for begin, end in zip(bounds, ends, strict=True)]
    return (_Piece * min(len(pieces), _MAX_PIECES))(*pieces[:_MAX_PIECES])


def read_many(pid: int, wanted: Iterable[tuple[int, int]]) -> list[bytes]:
    """Return the bytes at each (address, size), b"" where the memory cannot be read.

    One system call reads many of them.
    """
    saved = saved_process.get(pid)
    if saved is not None:
        pieces = ((saved.memory(address, size), size) for address, size in wanted)
        return [data if len(data) == size else b"" for data, size in pieces]
    return [part for batch in _batches(list(wanted)) for part in _read_batch(pid, batch)]


def _batches(wanted: list[tuple[int, int]]) -> Iterable[list[tuple[int, int]]]:
    return (wanted[start : start + _MAX_PIECES] for start in range(0, len(wanted), _MAX_PIECES))


def _read_batch(pid: int, wanted: list[tuple[int, int]]) -> list[bytes]:
    pieces: list[bytes] = []
    while len(pieces) < len(wanted):
        rest = wanted[len(pieces) :]
        total = sum(size for _, size in rest)
        buffer = ctypes.create_string_buffer(max(total, 1))
        own = _Piece(ctypes.addressof(buffer), total)
        # Plain numbers: to make an object for each piece would take longer than to read the piece.
        numbers = (number for piece in rest for number in piece)
        theirs = (ctypes.c_size_t * (2 * len(rest)))(*numbers)
        count = _read_pieces(pid, own, theirs, len(rest))
        if count < 0 and count != -errno.EFAULT:
            return pieces + [b""] * len(rest)  # the process is gone, or may not be read
        raw, offset = buffer.raw, 0
        for _, size in rest:
            if offset + size > count:
                break
            pieces.append(raw[offset : offset + size])
            offset += size
        if len(pieces) < len(wanted):
            pieces.append(b"")  # unreadable; later pieces may be readable
    return pieces


def read_string(pid: int, address: int, max_bytes: int) -> bytes:
    """Return a string up to its NUL, or its first ``max_bytes`` bytes."""
    return read(pid, address, max_bytes).split(b"\0", 1)[0]
