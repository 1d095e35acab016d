"""The single waits as Parquet, for DuckDB, Spark and pandas: the columns of the CSV table.

DuckDB reads the CSV table and writes the file: its wheel is half as large as that of pyarrow.
``began`` is a timestamp in microseconds, for Spark refuses nanoseconds, and ``began_ns`` has all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.export import csv_tables

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput

_TYPES = {
    "began_ns": "BIGINT", "wait_ns": "BIGINT", "hold_ns": "BIGINT", "tid": "INTEGER",
    "lock": "BIGINT", "holder": "INTEGER", "line": "INTEGER", "idle": "BOOLEAN",
    "timed_out": "BOOLEAN", "goes_on": "BOOLEAN", "from_scans": "BOOLEAN",
}  # fmt: skip
_PIECE = 1 << 20


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the file in pieces.

    Raises:
        LocktopError: the library is not installed, or the waits cannot be read.
    """
    try:
        import duckdb
    except ImportError:
        raise LocktopError(
            "the format parquet needs another package: pip install 'locktop[export]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="locktop-") as directory:
        table, result = Path(directory) / "waits.csv", Path(directory) / "waits.parquet"
        with table.open("wb") as file:
            file.writelines(csv_tables.render_waits(export_input))
        columns = {name: _TYPES.get(name, "VARCHAR") for name in csv_tables.WAIT_COLUMNS}
        with closing(duckdb.connect()) as connection:
            waits = connection.read_csv(str(table), header=True, columns=columns, quotechar='"')
            waits.project("make_timestamp(began_ns // 1000) AS began, *").write_parquet(str(result))
        with result.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
