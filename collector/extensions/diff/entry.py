"""The text of a comparison, in the document of a snapshot."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from locktop.collector.render.documents.snapshot_fields import meaning


class DifferenceEntry(Struct, kw_only=True, gc=False):
    """The text of `locktop diff`, with the other file as the earlier side."""

    before: Annotated[str, meaning("The other file, as the user named it.")]
    lines: Annotated[list[str], meaning("The lines of the text.")] = []
