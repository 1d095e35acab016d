"""The formats of all results that commands write and screens save: each is declared once, here.

The choices and the help of ``--format`` and the suffixes of files come from these declarations.
``locktop --help`` imports this module, so each function imports what it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, ParamSpec

from locktop.collector.errors import LocktopError
from locktop.collector.extension.discovery import extensions

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.model.diagnosis import Diagnosis
    from locktop.collector.render.profiles.call_tree import Step
    from locktop.collector.render.profiles.profile import Profile, Weight

P = ParamSpec("P")

#: Columns of text that goes to a file or a pipe.
WIDTH = 100


class OutputFormat(Generic[P]):
    """One format of a result.

    Args:
        name: the word after ``--format``.
        suffix: the end of the names of files.
        render: returns the result as the content of a file.
        about: its part of the help; "" if the part of the format before it tells of both.
        is_binary: it is not for a terminal.
        is_prose: people read it, and a headline may stand before it.
    """

    def __init__(
        self,
        name: str,
        suffix: str,
        render: Callable[P, bytes],
        *,
        about: str = "",
        is_binary: bool = False,
        is_prose: bool = False,
    ) -> None:
        self.name = name
        self.suffix = suffix
        self.render = render
        self.about = about
        self.is_binary = is_binary
        self.is_prose = is_prose


class ResultFormats(Generic[P]):
    """The formats of one result by name. The first is the default.

    Of two with one name the first counts, so no extension replaces a format of locktop.
    """

    def __init__(self, *formats: OutputFormat[P]) -> None:
        self._by_name: dict[str, OutputFormat[P]] = {}
        for entry in formats:
            self._by_name.setdefault(entry.name, entry)
        self.names = tuple(self._by_name)
        self.default = self.names[0]

    def __getitem__(self, name: str) -> OutputFormat[P]:
        return self._by_name[name]

    def render(self, name: str, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """Return the result in one format as the content of a file."""
        return self._by_name[name].render(*args, **kwargs)

    @property
    def help(self) -> str:
        """The help of ``--format``."""
        parts = [entry.about for entry in self._by_name.values() if entry.about]
        if not parts:
            return f"default {self.default}"
        if len(parts) == 2:
            return " or ".join(parts)
        return f"{', '.join(parts[:-1])}, or {parts[-1]}"


# ---- a snapshot: `locktop snapshot`, and the list of locks and threads on the screen ----


def _snapshot_json(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = WIDTH, idle: bool = False
) -> bytes:
    from locktop.collector.render.documents import snapshot_codec

    return snapshot_codec.encode(snapshot, before)


def _snapshot_msgpack(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = WIDTH, idle: bool = False
) -> bytes:
    from locktop.collector.render.documents import snapshot_codec

    return snapshot_codec.encode(snapshot, before, packed=True)


def _snapshot_text(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = WIDTH, idle: bool = False
) -> bytes:
    from locktop.collector.render.files import encoded
    from locktop.collector.render.text import report

    return encoded(report.render(snapshot, before, width, idle).rstrip("\n") + "\n")


def _formats_of_extensions() -> Iterator[OutputFormat[Snapshot, Snapshot | None, int, bool]]:
    for extension in extensions():
        if extension.formats is not None:
            yield from extension.formats()


#: ``before`` is an earlier scan of the same process, for the figures of the interval. With ``idle``
#: the text lists the threads that wait for work too.
SNAPSHOT_FORMATS = ResultFormats(
    OutputFormat("json", ".json", _snapshot_json),
    OutputFormat("msgpack", ".msgpack", _snapshot_msgpack, is_binary=True),
    OutputFormat("text", ".txt", _snapshot_text, is_prose=True),
    *_formats_of_extensions(),
)


# ---- the finding of `locktop check` ----


def _finding_text(snapshot: Snapshot, potential: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.render import check_report

    return check_report.render_text(snapshot, potential, width)


def _finding_line(snapshot: Snapshot, potential: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.render import check_report

    return check_report.render_line(snapshot, potential, width)


def _finding_json(snapshot: Snapshot, potential: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.render import check_report

    return check_report.render_json(snapshot, potential)


def _finding_dot(snapshot: Snapshot, potential: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.render import check_report

    return check_report.render_dot(snapshot)


def _finding_mermaid(snapshot: Snapshot, potential: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.render import check_report

    return check_report.render_mermaid(snapshot)


def _finding_formats_of_extensions() -> Iterator[OutputFormat[Snapshot, bool, int]]:
    for extension in extensions():
        if extension.finding_formats is not None:
            yield from extension.finding_formats()


#: With ``potential`` the potential deadlocks are part of the finding.
FINDING_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _finding_text, about="text (the default)", is_prose=True),
    OutputFormat("line", ".txt", _finding_line, about="line: the first line only"),
    OutputFormat("json", ".json", _finding_json, about="json"),
    OutputFormat(
        "dot",
        ".dot",
        _finding_dot,
        about="a graph of the cycles for Graphviz (dot) or Mermaid",
    ),
    OutputFormat("mermaid", ".mmd", _finding_mermaid),
    *_finding_formats_of_extensions(),
)


# ---- the call tree, or the butterfly of one step: `locktop callers`, and its screen ----


def _tree_text(
    profile: Profile, weight: Weight, idle: bool, step: Step | None, width: int = WIDTH
) -> bytes:
    from locktop.collector.render.files import encoded
    from locktop.collector.render.text import call_tree

    if step is not None:
        return encoded(call_tree.render_butterfly(profile, weight, step, idle, width))
    return encoded(call_tree.render_tree(profile, weight, idle, width))


def _tree_json(
    profile: Profile, weight: Weight, idle: bool, step: Step | None, width: int = WIDTH
) -> bytes:
    from locktop.collector.render import files
    from locktop.collector.render.documents import call_tree_json

    return files.encoded_json(call_tree_json.document(profile, weight, idle, step))


def _tree_csv(
    profile: Profile, weight: Weight, idle: bool, step: Step | None, width: int = WIDTH
) -> bytes:
    from locktop.collector.render import files
    from locktop.collector.render.documents import vsperf_csv

    if step is not None:
        raise LocktopError("such a report has all functions; leave --function out")
    return files.encoded(vsperf_csv.render(profile, weight, idle))


CALL_TREE_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _tree_text, about="text (the default)", is_prose=True),
    OutputFormat("json", ".json", _tree_json, about="json"),
    OutputFormat("csv", ".csv", _tree_csv, about="csv: a caller/callee summary report"),
)


# ---- what can be seen of a process: `locktop doctor` ----


def _diagnosis_text(diagnosis: Diagnosis, width: int = WIDTH) -> bytes:
    from locktop.collector.render.doctor import doctor_text

    return doctor_text(diagnosis, width).encode()


def _diagnosis_json(diagnosis: Diagnosis, width: int = WIDTH) -> bytes:
    from locktop.collector.render.doctor import doctor_json

    return doctor_json(diagnosis)


DIAGNOSIS_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _diagnosis_text, is_prose=True),
    OutputFormat("json", ".json", _diagnosis_json),
)
