"""The arguments of `locktop diff`."""

from __future__ import annotations

from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.tui.extensions.diff.command import Operand, operand


@pytest.mark.parametrize(
    ("text", "path", "begin", "end"),
    [
        ("a.rec@-35s..", "a.rec", "-35s", None),
        ("a.rec@..+10m", "a.rec", None, "+10m"),
        ("a.rec@..", "a.rec", None, None),
        ("a@b.rec@12:03:04.5..alert:2", "a@b.rec", "12:03:04.5", "alert:2"),
        (
            "a.rec@2026-11-23T12:03:04Z..2026-11-23T12:04:04Z",
            "a.rec",
            "2026-11-23T12:03:04Z",
            "2026-11-23T12:04:04Z",
        ),
    ],
)
def test_a_span_of_a_file(text: str, path: str, begin: str | None, end: str | None) -> None:
    assert operand(text) == Operand(text, path, begin, end, is_span=True)


def test_a_path_without_a_span() -> None:
    assert operand("a.rec") == Operand("a.rec", "a.rec")


def test_a_path_that_exists_is_never_cut(tmp_path: Path) -> None:
    path = tmp_path / "a@+1s..+2s"
    assert operand(str(path)).is_span
    path.touch()
    assert operand(str(path)) == Operand(str(path), str(path))


@pytest.mark.parametrize("text", ["a.rec@12:03", "a.rec@", "@..", "@-5s.."])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(LocktopError, match=r"no such file, and no span; the form is FILE@"):
        operand(text)
