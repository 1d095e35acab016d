"""Another process's memory, read from outside: nothing stops, nothing is changed."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

from locktop.collector.linux import procfs

PAGE = os.sysconf("SC_PAGE_SIZE")
_MAX_PIECES = 1024  # of one call: IOV_MAX


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


# Of libc: Python has none. It asks for the right at each call, and a process that has executed
# another program since is another one for it, where an open /proc/PID/mem would show the old one.
_readv = ctypes.CDLL(None, use_errno=True).process_vm_readv
_readv_at_once = ctypes.PyDLL(None, use_errno=True).process_vm_readv
for _function in (_readv, _readv_at_once):
    _function.restype = ctypes.c_ssize_t
    _function.argtypes = (
        ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong,
        ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
    )  # fmt: skip
# By process whose first thread has ended, another one of its threads.
_others: dict[int, int] = {}


def read(pid: int, address: int, size: int, *, at_once: bool = False) -> bytes:
    """Return up to ``size`` bytes, fewer where no more is mapped or may be read, b"" where nothing
    is. ``at_once``: no other thread of ours runs meanwhile."""
    if size <= 0 or not 0 < address < 1 << 63:
        return b""
    buffer = ctypes.create_string_buffer(size)
    own = _Piece(ctypes.addressof(buffer), size)
    # A piece is read whole or not at all: one for each page.
    theirs = _pieces(address, size)
    got = _got(pid, own, theirs, len(theirs), _readv_at_once if at_once else _readv)
    return buffer.raw[:got] if got > 0 else b""


def refusal(pid: int) -> int:
    """Return the error number with which the process's memory is refused to us, 0 where it may be
    read."""
    buffer = ctypes.create_string_buffer(1)
    got = _got(pid, _Piece(ctypes.addressof(buffer), 1), (_Piece * 1)(_Piece(1, 1)), 1)
    return 0 if got in (0, -errno.EFAULT) else -got  # the right is asked for first


def _got(
    pid: int,
    own: _Piece,
    theirs: ctypes.Array[Any],
    count: int,
    call: Callable[..., int] = _readv,
) -> int:
    """Read ``count`` pieces, and return how many bytes there were, or the negative error number."""

    def read_by(tid: int) -> int:
        got = call(tid, ctypes.byref(own), 1, theirs, count, 0)
        return got if got >= 0 else -ctypes.get_errno()

    got = read_by(pid)
    return got if got != -errno.ESRCH else _got_by_another(pid, read_by)


def _got_by_another(pid: int, read_by: Callable[[int], int]) -> int:
    """The memory of a process whose first thread has ended is that of the others still."""
    for find in (_others.get, procfs.living):
        tid = find(pid)
        if tid is None or tid == pid:
            continue
        got = read_by(tid)
        # Where it is none of the process's, the id may be a stranger's by now.
        if got != -errno.ESRCH and os.path.exists(f"/proc/{pid}/task/{tid}"):
            _others[pid] = tid
            return got
        _others.pop(pid, None)
    return -errno.ESRCH


def _pieces(address: int, size: int) -> ctypes.Array[_Piece]:
    if address % PAGE + size <= PAGE:
        return (_Piece * 1)(_Piece(address, size))
    bounds = [address, *range(address // PAGE * PAGE + PAGE, address + size, PAGE)]
    ends = [*bounds[1:], address + size]
    pieces = [_Piece(begin, end - begin) for begin, end in zip(bounds, ends, strict=True)]
    return (_Piece * min(len(pieces), _MAX_PIECES))(*pieces[:_MAX_PIECES])


def read_many(pid: int, wanted: Iterable[tuple[int, int]]) -> list[bytes]:
    """Return what is at each (address, size), in one call for many; b"" for what cannot be read."""
    return [part for batch in _batches(list(wanted)) for part in _read_batch(pid, batch)]


def _batches(wanted: list[tuple[int, int]]) -> Iterable[list[tuple[int, int]]]:
    return (wanted[at : at + _MAX_PIECES] for at in range(0, len(wanted), _MAX_PIECES))


def _read_batch(pid: int, wanted: list[tuple[int, int]]) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < len(wanted):
        rest = wanted[len(found) :]
        total = sum(size for _, size in rest)
        buffer = ctypes.create_string_buffer(max(total, 1))
        own = _Piece(ctypes.addressof(buffer), total)
        # As numbers: an object for each piece would take longer than to read it.
        theirs = (ctypes.c_size_t * (2 * len(rest)))(*(number for one in rest for number in one))
        got = _got(pid, own, theirs, len(rest))
        if got < 0 and got != -errno.EFAULT:
            return found + [b""] * len(rest)  # the process is gone, or may not be read
        raw, at = buffer.raw, 0
        for _, size in rest:
            if at + size > got:
                break
            found.append(raw[at : at + size])
            at += size
        if len(found) < len(wanted):
            found.append(b"")  # that one cannot be read: what comes after it, perhaps
    return found


def read_string(pid: int, address: int, most: int) -> bytes:
    """Return a string up to its NUL, or its first ``most`` bytes."""
    return read(pid, address, most).split(b"\0", 1)[0]
