"""The result of a gate as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.gate import sentences
from locktop.collector.extensions.gate.model import GateResult
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

_MIN_NAME = 12


def render(result: GateResult, width: int = 100) -> str:
    """Return the text. Only very long names or figures make a line longer than ``width``."""
    return "\n".join(_lines(result, width)) + "\n"


def _lines(result: GateResult, width: int) -> Iterator[str]:
    yield from wrapped(sentences.headline(result), width)
    yield ""
    for heading, text in sentences.facts(result):
        yield from wrapped(f"{heading:8}{text}", width)
    for quantity, title in sentences.titles(result):
        yield ""
        yield title
        yield from _table(sentences.rows(result, quantity), width)
    if result.notes:
        yield ""
    for note in result.notes:
        yield from wrapped(clean(note), width)


def _table(rows: list[tuple[str, ...]], width: int) -> Iterator[str]:
    every = [sentences.HEADS, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(sentences.HEADS))]
    widths[0] = min(widths[0], max(_MIN_NAME, width - sum(widths[1:]) - 2 * len(widths[1:])))
    for row in every:
        cells = [clean(row[0], widths[0]).ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()
