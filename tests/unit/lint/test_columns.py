"""The check that the page about the screen has all columns of figures."""

from __future__ import annotations

from lint.columns import missing_columns
from support.documents import ROOT


def test_a_column_without_a_row_is_a_fault() -> None:
    page = (ROOT / "docs/screen.md").read_text()
    assert not list(missing_columns(page))
    (fault,) = missing_columns(page.replace("| TRYFAIL |", "| TRY |"))
    assert fault.message == "no row for the column TRYFAIL"
