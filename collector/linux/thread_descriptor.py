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


def tids_of(pid: int, descriptors: Iterable[int]) -> dict[int, int]:
    """Return the ids of threads by the addresses of their descriptors; unsound ones are left out.

    Args:
        pid: the process.
        descriptors: what pthread_self() returned in these threads.
    """
    wanted = [address for address in dict.fromkeys(descriptors) if 0 < address < 1 << 63]
    pieces = process_memory.read_many(pid, [(address, _DESCRIPTOR.size) for address in wanted])
    tids = {}
    for address, data in zip(wanted, pieces, strict=True):
        if len(data) == _DESCRIPTOR.size:
            header, itself, tid = _DESCRIPTOR.unpack(data)
            if header == itself == address and tid:
                tids[address] = tid
    return tids
