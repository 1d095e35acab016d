"""Lines that fit a width."""

from __future__ import annotations

import pytest

from locktop.collector.render.words.wrap import wrapped


@pytest.mark.parametrize("time", ["33 min 44 s", "3 h 05 min", "1.23 s", "850 ns"])
def test_no_line_ends_within_a_duration(time: str) -> None:
    line = f"  abba waits for the end of pay-1, for at least {time}, in main"
    for width in range(30, 80):
        parts = wrapped(line, width)
        assert any(time in part for part in parts), parts
        assert " ".join(part.strip() for part in parts) == line.strip()
        assert max(map(len, parts)) <= width
