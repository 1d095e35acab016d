"""The columns that come from declarations of figures, in the page about the screen."""

from __future__ import annotations

from collections.abc import Iterator

from lint.finding import Fault
from locktop.collector.model.lock_figures import figure_columns


def missing_columns(text: str) -> Iterator[Fault]:
    """Yield the columns without a row in the tables of docs/screen.md."""
    heads = {word.strip() for line in text.splitlines() for word in line.split("|")[1:2]}
    titles = {title.strip() for head in heads for title in head.split(",")}
    for _, column, _ in figure_columns():
        if column.title not in titles:
            yield Fault(1, f"no row for the column {column.title}")
