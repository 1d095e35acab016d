"""Layouts by version."""

from __future__ import annotations

from locktop.collector.symbols.python.state_layout import (
    NEWEST,
    OLDEST,
    TABLE_WORDS,
    THREADED_AT,
    layout_of,
)

WORDS = (0, 0, 0, *range(3, TABLE_WORDS))


def test_each_supported_version_has_a_layout() -> None:
    versions = [(3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)]
    assert all(layout_of(version, WORDS) is not None for version in versions)
    assert layout_of((3, OLDEST[1] - 1), WORDS) is None
    assert layout_of((3, NEWEST[1] + 1), WORDS) is None


def test_a_new_version_needs_its_table() -> None:
    assert layout_of((3, 13), ()) is None


def test_a_free_threaded_layout_follows_from_a_larger_header() -> None:
    table = (*WORDS[:THREADED_AT], 1, *WORDS[THREADED_AT + 1 :])
    layout, usual = layout_of((3, 13), table), layout_of((3, 13), WORDS)
    assert layout is not None
    assert usual is not None
    assert layout.code_name_at == usual.code_name_at + 16
    assert layout.function_name_at == usual.function_name_at + 16
    assert layout.generator_frame_at == usual.generator_frame_at + 16
    assert layout.frame.exceptions_at == usual.frame.exceptions_at + 16
    assert layout.frame.local_count_at == usual.frame.local_count_at + 16
    assert layout.frame.locals_at == usual.frame.locals_at, "the table says it"
    assert layout.frame.copy_number_at == 0, "there are no copies of instructions"


def test_from_3_14_on_the_table_says_more() -> None:
    layout = layout_of((3, 14), WORDS)
    assert layout is not None
    assert (layout.frame.copy_number_at, layout.frame.copies_at) == (38, 49)
    assert (layout.generator_frame_at, layout.items_at) == (85, 57)
