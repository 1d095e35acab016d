"""The first bytes of a connection: each side sends the header of a recording.

The listener sends first. So the sender learns at once that a certificate is refused.
"""

from __future__ import annotations

from locktop.collector.errors import LocktopError
from locktop.collector.recording.frame_format import FILE_HEADER, MAGIC, VERSION

SIZE = FILE_HEADER.size
WELCOME, BUSY = 0, 1


def greeting(word: int = WELCOME) -> bytes:
    """Return the first bytes of a side."""
    return FILE_HEADER.pack(MAGIC, VERSION, word)


def check_greeting(data: bytes) -> None:
    """Raise LocktopError unless the other side speaks this protocol and is ready.

    Args:
        data: the first SIZE bytes of the other side.
    """
    magic, version, word = FILE_HEADER.unpack(data)
    if magic != MAGIC:
        raise LocktopError("the other side is no locktop, or uses TLS")
    if version != VERSION:
        raise LocktopError(f"the other side has version {version}; this locktop has {VERSION}")
    if word != WELCOME:
        raise LocktopError("the listener shows another process already")
