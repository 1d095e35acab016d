"""Snapshots as a chain: a whole one, then what changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from locktop.collector.recording import frame_format
from locktop.collector.recording.frame_format import FrameType

#: The limits of a chain: snapshots, and bytes of their payloads. With these the last snapshot of a
#: chain is unpacked in a tenth of a second. A whole snapshot alone may have more bytes.
MAX_LINKS, MAX_BYTES = 64, 64 << 20


class Link(Struct, frozen=True, gc=False):
    """One snapshot of a chain, packed."""

    type: FrameType  # KEY or CHANGE
    packed: bytes
    unpacked: int  # bytes


class ChainPacker:
    """Packs one payload after the other."""

    def __init__(self) -> None:
        self._before: bytes | None = None
        self._count = self._bytes = 0

    def begin_anew(self) -> None:
        """Make the next link a whole snapshot."""
        self._before = None

    def link(self, payload: bytes) -> Link:
        """Return the next link of the chain."""
        before = self._before
        if self._count >= MAX_LINKS or self._bytes + len(payload) > MAX_BYTES:
            before = None
        if before is None:
            self._count = self._bytes = 0
        self._before = payload
        self._count += 1
        self._bytes += len(payload)
        return Link(
            type=FrameType.KEY if before is None else FrameType.CHANGE,
            packed=frame_format.packed(payload, before),
            unpacked=len(payload),
        )


def unpack_last(links: Iterable[Link], before: bytes | None = None) -> bytes:
    """Return the payload of the last of ``links``.

    Args:
        links: from a whole snapshot on, or from the snapshot behind ``before`` on.
        before: the payload of the snapshot before the first link.

    Raises:
        LocktopError: a link is damaged.
    """
    for link in links:
        base = before if link.type == FrameType.CHANGE else None
        before = frame_format.unpack(link.packed, link.unpacked, base)
    assert before is not None
    return before
