"""The index of a recording: where its frames are, in parts that the writer adds on the way."""

from __future__ import annotations

import struct

from msgspec import Struct

#: The last bytes of a recording that was ended: where the last part of the index is, and a word.
#: A recording without them was cut off; its frames are found by their headers.
TRAILER = struct.Struct("<Q8s")
TRAILER_WORD = b"LTINDEX\n"


class IndexEntry(Struct, array_like=True, frozen=True, gc=False):
    """One frame."""

    offset: int  # of its header in the file
    type: int
    stored: int  # bytes of the payload
    unpacked: int
    time_ns: int
    #: of ring records: when the earliest of them began; 0: not known, or another type of frame
    first_ns: int = 0


class IndexPart(Struct, array_like=True, frozen=True):
    """The frames since the part before, without the parts of the index themselves."""

    before: int  # offset of the part before, 0 none
    frames: tuple[IndexEntry, ...]
