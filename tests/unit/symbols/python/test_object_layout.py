"""Which versions of CPython have a known layout."""

from __future__ import annotations

import pytest

from locktop.collector.symbols.python.object_layout import layout_of


@pytest.mark.parametrize("minor", range(8, 15))
def test_each_version_has_a_layout(minor: int) -> None:
    layout = layout_of((3, minor), is_free_threaded=False)
    assert layout is not None
    assert (layout.version, layout.header) == ((3, minor), 16)


@pytest.mark.parametrize("version", [(2, 7), (3, 7), (3, 15), (4, 0)])
def test_another_version_has_none(version: tuple[int, int]) -> None:
    assert layout_of(version, is_free_threaded=False) is None


def test_objects_without_the_gil_have_a_larger_head() -> None:
    layout = layout_of((3, 13), is_free_threaded=True)
    assert layout is not None
    assert (layout.header, layout.text_at, layout.state_shift) == (32, 56, 2)
    layout = layout_of((3, 14), is_free_threaded=True)
    assert layout is not None
    assert (layout.text_at, layout.state_shift) == (56, 8), "the state begins with a byte"
