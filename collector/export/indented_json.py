"""Writes the document of a snapshot as indented JSON.

msgspec indents a whole text, and takes longer for that than for all else. Most elements of a large
document are those of blame, and these are all alike. So this module indents them itself, in C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from locktop.collector.export.snapshot_document import Document
from locktop.collector.export.snapshot_locks import BlameEntry
from locktop.collector.native import ffi, lib

_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)
#: Shorter lists are not worth the effort.
MIN_ELEMENTS = 500
#: Stands for the elements of a list. No text of a document has a control character.
_STAND_IN, _STAND_INS = "\0blame", re.compile(rb'"\\u0000blame"')


def encode(document: Document, enc_hook: Callable[[object], str]) -> bytes:
    """Return the document as JSON text.

    Args:
        document: the document. Its longest lists of blame are gone afterwards.
        enc_hook: see msgspec.json.encode().
    """
    elements = []
    for lock in document.locks:
        if len(lock.blame) >= MIN_ELEMENTS and lock.blame[0].interval is UNSET:
            elements.append(_elements(lock.blame, enc_hook))
            lock.blame = cast(Any, [_STAND_IN])
    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=enc_hook), indent=1)
    parts = _STAND_INS.split(text)
    whole = [part for pair in zip(parts, elements, strict=False) for part in pair]
    return b"".join([*whole, parts[-1], b"\n"])


def _elements(blame: Sequence[BlameEntry], enc_hook: Callable[[object], str]) -> bytes:
    """Return the elements as msgspec.json.format() would indent them.

    The values are numbers and hexadecimal texts.
    """
    text = msgspec.json.encode(blame, enc_hook=enc_hook)[1:-1]
    size, capacity = 0, len(text)
    while not size:
        capacity *= 2
        indented = _new_uncleared("char[]", capacity)
        size = int(lib.lt_indent_objects(text, len(text), indented, capacity))
    return bytes(ffi.buffer(indented, size))
