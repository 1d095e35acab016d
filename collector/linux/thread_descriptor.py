"""The thread of a struct pthread, whose address is the thread's pthread_self().

On x86-64 the struct has its own address twice at its begin (sysdeps/x86_64/nptl/tls.h), and the id
of the thread always at the same offset. The reading of another libc gives no thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from locktop.collector.linux import process_memory

_TID_AT = 0x2D0
_DESCRIPTOR = struct.Struct(f"=Q8xQ{_TID_AT - 24}xI")  # tcb, self; tid
SIZE = _DESCRIPTOR.size


def tids_of(pid: int, descriptors: Iterable[int]) -> dict[int, int]:
    """Return the ids of threads by the addresses of their descriptors; unsound ones are left out.

    Args:
        pid: the process.
        descriptors: what pthread_self() returned in these threads.
    """
    wanted = [address for address in dict.fromkeys(descriptors) if 0 < address < 1 << 63]
    pieces = process_memory.read_many(pid, [(address, SIZE) for address in wanted])
    tids = {address: tid_in(address, data) for address, data in zip(wanted, pieces, strict=True)}
    return {address: tid for address, tid in tids.items() if tid}


def tid_in(address: int, data: bytes) -> int:
    """Return the id of the thread of a descriptor; 0 if it is unsound.

    Args:
        address: of the descriptor.
        data: its first SIZE bytes.
    """
    if len(data) != SIZE:
        return 0
    header, itself, tid = _DESCRIPTOR.unpack(data)
    return int(tid) if header == itself == address else 0
