"""Frames as text, from the widest form to the narrowest."""

from __future__ import annotations

import pytest

from locktop.collector.model import Frame
from locktop.collector.render.words.source_location import (
    file_and_line,
    full_location,
    short_location,
    shortest_location,
)


@pytest.mark.parametrize(
    ("frame", "full", "short", "shortest", "line"),
    [
        (
            Frame(0x1, "put", "/src/queue.c", 42, "app", 0x2),
            "put at /src/queue.c:42", "put queue.c:42", "put:42", "queue.c:42",
        ),
        (
            Frame(0x1, "put", "/src/queue.c", None, "app", 0x2),
            "put at /src/queue.c", "put queue.c", "put queue.c", "queue.c",
        ),
        (
            Frame(0x1, "put", None, None, "app", 0x2),
            "put in app", "put [app]", "put [app]", "[app]",
        ),
        (Frame(0x1, "", None, None, "app", 0x2), "app+0x2 in app", "app+0x2", "app+0x2", "[app]"),
        (Frame(0x1, "", None, None, "", 0x1), "?+0x1", "0x1", "0x1", ""),
    ],
)  # fmt: skip
def test_a_location_fits_each_width(
    frame: Frame, full: str, short: str, shortest: str, line: str
) -> None:
    assert full_location(frame) == full
    assert short_location(frame) == short
    assert shortest_location(frame) == shortest
    assert file_and_line(frame) == line
