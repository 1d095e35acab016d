"""Layouts by version."""

from __future__ import annotations

from locktop.collector.symbols.python.state_layout import NEWEST, OLDEST, TABLE_WORDS, layout_of

WORDS = (0, 0, 0, *range(3, TABLE_WORDS))


def test_each_supported_version_has_a_layout() -> None:
    versions = [(3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)]
    assert all(layout_of(version, WORDS) is not None for version in versions)
    assert layout_of((3, OLDEST[1] - 1), WORDS) is None
    assert layout_of((3, NEWEST[1] + 1), WORDS) is None


def test_a_new_version_needs_its_table_and_the_gil() -> None:
    assert layout_of((3, 13), ()) is None
    assert layout_of((3, 13), (*WORDS[:2], 1, *WORDS[3:])) is None
