"""Reads caller/callee summary reports of Visual Studio's profiler (``VSPerfReport
/Summary:CallerCallee``, a CSV file): of sampling, of tracing, with whatever columns and marks.

A report has a group of rows for each function: the function itself (``Root``), its callers and its
callees. Columns are found by their titles, which differ in number and order between editions and
from report to report.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from locktop.collector.errors import LocktopError
from locktop.collector.profile.call_tree import Part, Place, Step
from locktop.collector.profile.call_tree_estimate import Group, Row
from locktop.collector.sanitize import clean

#: What we write as module of a lock (vsperf_csv.py), so that it is one when it is read again.
LOCK_MODULE = "[lock]"

_SEPARATORS = ("\t", ";", ",")
_HEADER_WITHIN = 50
_MAX_NOTES = 20
_TYPES = {"root": 0, "caller": 1, "callee": 2, "0": 0, "1": 1, "2": 2}
_TYPE_NAMES = ("Root", "Caller", "Callee")
_LINE_END = re.compile(r"\r\n|\r|\n")
_THOUSANDS = " '\u00a0\u2009\u202f\u2019"


@dataclass(frozen=True, slots=True)
class Measure:
    """A pair of columns: what was measured, with and without all below."""

    name: str  # as --weight takes it
    says: str
    inclusive: tuple[str, ...]  # titles of the column, any of them
    exclusive: tuple[str, ...]


def _times(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    with_all, alone = f"{kind} inclusive time", f"{kind} exclusive time"
    return (with_all, f"total {with_all}"), (alone, f"total {alone}")


#: Those of percentages count where the report has no others.
MEASURES = (
    Measure("samples", "samples", ("inclusive samples",), ("exclusive samples",)),
    Measure("elapsed", "elapsed time", *_times("elapsed")),
    Measure("application", "application time", *_times("application")),
    Measure("blocked", "blocked time", ("inclusive blocked time",), ("exclusive blocked time",)),
    Measure("contentions", "contentions", ("inclusive contentions",), ("exclusive contentions",)),
)
_SHARES = (
    Measure(
        "samples",
        "% of the samples",
        ("inclusive samples %", "% inclusive samples", "inclusive %"),
        ("exclusive samples %", "% exclusive samples", "exclusive %"),
    ),
    Measure(
        "elapsed",
        "% of the elapsed time",
        ("elapsed inclusive time %", "% elapsed inclusive time"),
        ("elapsed exclusive time %", "% elapsed exclusive time"),
    ),
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says: groups by function for each measure that it has."""

    measures: tuple[Measure, ...]
    groups: Mapping[str, Mapping[Step, Group]]  # by the measure's name
    processes: tuple[str, ...]  # "name (pid)"
    notes: tuple[str, ...]  # rows that were left out, and why: one line each


def parse(data: bytes, name: str) -> Report:
    """Read a report. Raises LocktopError, in one line with ``name``, when it is none."""
    lines = _LINE_END.split(decoded(data))  # no other character ends a line, or is counted as one
    columns = _header(lines)
    if columns is None:
        raise LocktopError(
            f"{name} is no caller/callee report: no line has the titles Type and Function Name"
        )
    if not columns.measures:
        raise LocktopError(f"{name} has no inclusive and exclusive columns that are known")
    notes = _Notes()
    cells = list(_cells(lines, columns, notes))
    marks = _Marks(cells, columns)
    rows = [row for number, line in cells for row in _row(number, line, columns, marks, notes)]
    if not any(row.type == 0 for row in rows):
        reason = notes.told()[0] if notes.told() else "there is no row of a function itself"
        raise LocktopError(f"{name} cannot be used: {reason}")
    return _report(rows, columns, notes)


def decoded(data: bytes) -> str:
    """Return the text of a file that says, or not, in which encoding it is."""
    for bom, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if b"\0" in data[:2]:
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


class _Notes:
    """What is wrong, line by line, but not without end."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._more = 0

    def say(self, line: int, what: str) -> None:
        if len(self._said) < _MAX_NOTES:
            self._said.append(clean(f"line {line} is left out: {what}"))
        else:
            self._more += 1

    def told(self) -> tuple[str, ...]:
        more = (f"and {self._more} lines more are left out",) if self._more else ()
        return (*self._said, *more)


# ---- columns ----


class _Columns:
    """Where in a row what stands."""

    def __init__(self, line: int, separator: str, titles: list[str]) -> None:
        """``line``: the number of that which has the titles."""
        self.line = line
        self.separator = separator
        self.at = {title: n for n, title in reversed(list(enumerate(titles))) if title}
        pairs = self._pairs(MEASURES) or self._pairs(_SHARES)
        self.measures = tuple(measure for measure, _ in pairs)
        self.pairs = tuple(pair for _, pair in pairs)
        #: How many cells a row has at least.
        self.needed = 1 + max([self.at["type"], self.at["function name"], *map(max, self.pairs)])

    def _pairs(self, measures: Iterable[Measure]) -> list[tuple[Measure, tuple[int, int]]]:
        found = []
        for measure in measures:
            first, second = self._find(measure.inclusive), self._find(measure.exclusive)
            if first is not None and second is not None:
                found.append((measure, (first, second)))
        return found

    def _find(self, titles: Iterable[str]) -> int | None:
        return next((self.at[title] for title in titles if title in self.at), None)

    def cell(self, cells: list[str], title: str) -> str:
        at = self.at.get(title)
        return cells[at].strip() if at is not None and at < len(cells) else ""


def _header(lines: list[str]) -> _Columns | None:
    for number, line in enumerate(lines[:_HEADER_WITHIN], 1):
        for separator in _SEPARATORS:
            titles = [" ".join(cell.casefold().split()) for cell in _split(line, separator)]
            if "type" in titles and "function name" in titles:
                return _Columns(number, separator, titles)
    return None


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _cells(lines: list[str], columns: _Columns, notes: _Notes) -> Iterator[tuple[int, list[str]]]:
    """Line by line, so that a quotation mark too few costs one line and not all that follow."""
    for number, line in enumerate(lines[columns.line :], columns.line + 1):
        if not line.strip():
            continue
        cells = _split(line, columns.separator)
        if len(cells) < columns.needed:
            notes.say(number, f"it has {len(cells)} cells, {columns.needed} are needed")
        else:
            yield number, cells


# ---- numbers ----


class _Marks:
    """Which of point and comma parts whole from decimals; the other one parts thousands."""

    def __init__(self, cells: list[tuple[int, list[str]]], columns: _Columns) -> None:
        figures = [at for pair in columns.pairs for at in pair]
        # Percentages always have decimals, and never thousands.
        figures += [at for title, at in columns.at.items() if title.endswith("%")]
        told = Counter(filter(None, map(_decimal_mark, _texts(cells, figures))))
        # Where nothing tells: where the comma parts columns, the point is for decimals.
        otherwise = "," if columns.separator == ";" else "."
        self.decimal = told.most_common(1)[0][0] if told else otherwise
        thousands = _THOUSANDS + _other(self.decimal)
        self._groups = str.maketrans("", "", thousands)
        self._number = re.compile(
            rf"(?=[{self.decimal}]?[0-9])(?:[0-9]+|[0-9]{{1,3}}(?:[{thousands}][0-9]{{2,3}})*[{thousands}][0-9]{{3}})?"
            rf"(?:[{self.decimal}][0-9]*)?(?:[eE][+-]?[0-9]{{1,3}})?"
        )

    def number(self, text: str) -> float | None:
        """Return the number that a cell says, None where it says none that could be."""
        text = _bare(text)
        if not self._number.fullmatch(text):
            return None
        value = float(text.translate(self._groups).replace(self.decimal, "."))
        return value if value < 1e300 else None


def _other(mark: str) -> str:
    return "," if mark == "." else "."


def _bare(text: str) -> str:
    return text.strip().rstrip("%").strip()


def _texts(cells: list[tuple[int, list[str]]], at: list[int]) -> Iterator[str]:
    for _, row in cells:
        for n in at:
            if n < len(row):
                yield _bare(row[n])


def _decimal_mark(text: str) -> str:
    """The mark that parts decimals if this text alone tells, else "": of thousands there would be
    three digits behind it, and of decimals it is the only one of its kind."""
    mark = max(".,", key=text.rfind)
    at = text.rfind(mark)
    if at < 0:
        return ""
    if text.count(mark) > 1:
        return _other(mark)
    return mark if _other(mark) in text or len(text) - at - 1 != 3 else ""


# ---- rows ----


@dataclass(slots=True)
class _Row:
    line: int
    type: int
    name: str
    module: str
    address: str
    root: str
    process: str
    place: Place | None
    values: dict[str, tuple[float, float]] = field(default_factory=dict)


def _row(
    number: int, cells: list[str], columns: _Columns, marks: _Marks, notes: _Notes
) -> Iterator[_Row]:
    kind = _TYPES.get(columns.cell(cells, "type").casefold())
    name = clean(columns.cell(cells, "function name"))
    if kind is None:
        notes.say(number, f"type {columns.cell(cells, 'type')!r} is none of Root, Caller, Callee")
        return
    if not name:
        notes.say(number, "it names no function")
        return
    values = {}
    for measure, (first, second) in zip(columns.measures, columns.pairs, strict=True):
        inclusive, exclusive = marks.number(cells[first]), marks.number(cells[second])
        if inclusive is None or exclusive is None:
            wrong = cells[first] if inclusive is None else cells[second]
            notes.say(number, f"{wrong.strip()!r} is not a number of {measure.says}")
            return
        values[measure.name] = (inclusive, exclusive)
    module = clean(columns.cell(cells, "module name"))
    process = " ".join(
        filter(None, (columns.cell(cells, "process name"), columns.cell(cells, "process id")))
    )
    yield _Row(
        number, kind, name, module, columns.cell(cells, "function address"),
        clean(columns.cell(cells, "root function name")), clean(process), _place(cells, columns),
        values,
    )  # fmt: skip


def _place(cells: list[str], columns: _Columns) -> Place | None:
    file = clean(columns.cell(cells, "source file"))
    line = columns.cell(cells, "function line number")
    if not file:
        return None
    return Place(file, int(line) if line.isdecimal() and len(line) < 10 else 0)


# ---- groups ----


def _report(rows: list[_Row], columns: _Columns, notes: _Notes) -> Report:
    steps = _Steps(rows)
    names = [measure.name for measure in columns.measures]
    sums: dict[Step, _Sums] = {}
    by_name: dict[str, Step] = {}
    current: Step | None = None
    for row in rows:
        if row.type == 0:
            current = steps.of(row)
            by_name.setdefault(row.name, current)
            sums.setdefault(current, _Sums()).add(0, current, row)
            continue
        if current is None or (row.root and row.root != current.name):
            current = by_name.get(row.root)
        if current is None:
            of = f"of {row.root}" if row.root else "before it"
            notes.say(row.line, f"{_TYPE_NAMES[row.type]} without a Root row {of}")
            continue
        sums[current].add(row.type, steps.of(row), row)
    return Report(
        columns.measures,
        {name: {step: one.group(name) for step, one in sums.items()} for name in names},
        tuple(dict.fromkeys(row.process for row in rows if row.process)),
        notes.told(),
    )


class _Steps:
    """Keys of functions: name and module, and the address where that names several."""

    def __init__(self, rows: list[_Row]) -> None:
        addresses: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for row in rows:
            if row.type == 0:
                addresses[row.process, row.module, row.name].add(row.address)
        self._shared = {key for key, found in addresses.items() if len(found) > 1}
        self._processes = len({row.process for row in rows}) > 1

    def of(self, row: _Row) -> Step:
        shared = (row.process, row.module, row.name) in self._shared
        number = _address(row.address) if shared else 0
        if row.module == LOCK_MODULE:
            return Step(row.name, part=Part.LOCK, number=number)
        module = row.module
        if self._processes and row.process:
            module = f"{module} of {row.process}".strip()
        return Step(row.name, module, number=number)


def _address(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


class _Sums:
    """The rows of one group; rows of one function add up."""

    def __init__(self) -> None:
        self._rows: tuple[dict[Step, list[_Row]], ...] = ({}, {}, {})

    def add(self, kind: int, step: Step, row: _Row) -> None:
        self._rows[kind].setdefault(step, []).append(row)

    def group(self, measure: str) -> Group:
        own, callers, callees = (
            tuple(_summed(step, found, measure) for step, found in rows.items())
            for rows in self._rows
        )
        return Group(own[0], callers, callees)


def _summed(step: Step, rows: list[_Row], measure: str) -> Row:
    values = [row.values[measure] for row in rows]
    place = next((row.place for row in rows if row.place is not None), None)
    return Row(step, sum(one for one, _ in values), sum(one for _, one in values), place)
