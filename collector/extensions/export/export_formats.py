"""The formats of ``locktop export``: each is declared once, here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from locktop.collector.render.formats import OutputFormat

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput


class ExportContent(StrEnum):
    """The part of a process that a format has."""

    WAITS = "each single wait"
    STACKS = "the waits summed up by stack"
    STATE = "the last scan"


class ExportFormat(OutputFormat[["ExportInput"]]):
    """A format of ``locktop export``.

    Args:
        name: the word after ``--to``.
        suffix: the end of the names of files.
        pieces: yields the content of the file in pieces; may raise LocktopError.
        content: what the format has of a process.
        about: what the file is for, for the help.
        is_binary: it is not for a terminal.
    """

    def __init__(
        self,
        name: str,
        suffix: str,
        pieces: Callable[[ExportInput], Iterator[bytes]],
        content: ExportContent,
        *,
        about: str,
        is_binary: bool = False,
    ) -> None:
        super().__init__(name, suffix, self._render, about=about, is_binary=is_binary)
        self.pieces = pieces
        self.content = content

    def _render(self, export_input: ExportInput) -> bytes:
        return b"".join(self.pieces(export_input))


def _perfetto(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import perfetto_trace

    return perfetto_trace.render(export_input)


def _chrome(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import chrome_trace

    return chrome_trace.render(export_input)


def _pprof(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import pprof_profile

    return pprof_profile.render(export_input)


def _speedscope(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import speedscope_file

    return speedscope_file.render(export_input)


def _stack_lines(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import folded_stacks

    return folded_stacks.render(export_input)


def _csv_waits(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import csv_tables

    return csv_tables.render_waits(export_input)


def _csv_locks(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import csv_tables

    return csv_tables.render_locks(export_input)


def _csv_threads(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import csv_tables

    return csv_tables.render_threads(export_input)


def _parquet(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import parquet_table

    return parquet_table.render(export_input)


def _dot(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import wait_graph

    return wait_graph.render_dot(export_input)


def _mermaid(export_input: ExportInput) -> Iterator[bytes]:
    from locktop.collector.extensions.export import wait_graph

    return wait_graph.render_mermaid(export_input)


_WAITS, _STACKS, _STATE = ExportContent

_FORMATS = (
    ExportFormat("perfetto", ".perfetto-trace", _perfetto, _WAITS,
                 about="a trace for ui.perfetto.dev", is_binary=True),
    ExportFormat("chrome", ".json", _chrome, _WAITS, about="a trace for chrome://tracing"),
    ExportFormat("pprof", ".pb.gz", _pprof, _STACKS, about="a profile for go tool pprof",
                 is_binary=True),
    ExportFormat("speedscope", ".speedscope.json", _speedscope, _STACKS,
                 about="a flame graph for speedscope.app"),
    ExportFormat("folded", ".folded", _stack_lines, _STACKS, about="stacks for flame graph tools"),
    ExportFormat("csv", ".csv", _csv_waits, _WAITS, about="a row of each wait"),
    ExportFormat("csv-locks", ".csv", _csv_locks, _STATE, about="a row of each lock"),
    ExportFormat("csv-threads", ".csv", _csv_threads, _STATE, about="a row of each thread"),
    ExportFormat("parquet", ".parquet", _parquet, _WAITS, about="the waits for DuckDB and Spark",
                 is_binary=True),
    ExportFormat("dot", ".dot", _dot, _STATE, about="who waits for whom, for Graphviz"),
    ExportFormat("mermaid", ".mmd", _mermaid, _STATE, about="the same for Markdown pages"),
)  # fmt: skip

#: The formats by name, in the order of the help.
EXPORT_FORMATS: Mapping[str, ExportFormat] = {entry.name: entry for entry in _FORMATS}
