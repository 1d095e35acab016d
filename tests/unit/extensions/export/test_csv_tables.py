"""The tables for spreadsheets."""

from __future__ import annotations

from support import exported
from unit.builders import blocking

from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS
from locktop.collector.extensions.export.export_input import ExportInput


def test_a_holder_that_is_not_certain_has_a_column_of_its_own() -> None:
    for known, columns in (
        ({"holders": (blocking.HOLDER,)}, ("100", "", "")),
        ({"holders_probable": blocking.PROBABLY}, ("", "100", "")),
        ({"readers": 2}, ("", "", "2")),
    ):
        export_input = ExportInput(blocking.sampled(**known), lambda: iter(()))
        (row,) = exported.csv_rows(EXPORT_FORMATS["csv-locks"].render(export_input))
        assert (row["holders"], row["holders_probable"], row["readers"]) == columns
        assert row["waiters"] == "200 201"
