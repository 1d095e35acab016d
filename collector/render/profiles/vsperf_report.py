"""Reads the caller/callee summary reports of Visual Studio's profiler.

``VSPerfReport /Summary:CallerCallee`` writes such a report as a CSV file. The report has a group of
rows for each function: the function itself (``Root``), its callers and its callees. The columns are
found by their titles, because their number and order differ between editions and reports. Decimal
marks and encodings differ too.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from locktop.collector.errors import LocktopError
from locktop.collector.render.profiles.call_tree import SourceLine, Step, StepKind
from locktop.collector.render.profiles.call_tree_estimate import FunctionGroup, FunctionRow
from locktop.collector.sanitize import clean

#: ``export/vsperf_csv.py`` writes this as the module of a lock, so that it is read as a lock again.
LOCK_MODULE = "[lock]"

_SEPARATORS = ("\t", ";", ",")
_HEADER_WITHIN = 50
_MAX_NOTES = 20
_TYPES = {"root": 0, "caller": 1, "callee": 2, "0": 0, "1": 1, "2": 2}
_TYPE_NAMES = ("Root", "Caller", "Callee")
_LINE_END = re.compile(r"\r\n|\r|\n")
_THOUSANDS = " '\u00a0\u2009\u202f\u2019"


class Measure(Struct, frozen=True):
    """A pair of columns: one measure, with and without the called functions."""

    name: str  # the value of --weight
    says: str  # the name for a person
    inclusive: tuple[str, ...]  # titles of the column, any of them
    exclusive: tuple[str, ...]


def _times(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    inclusive, exclusive = f"{kind} inclusive time", f"{kind} exclusive time"
    return (inclusive, f"total {inclusive}"), (exclusive, f"total {exclusive}")


#: A report without any of these may have the percentages of ``_SHARES``.
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


class CallerCalleeReport(Struct, frozen=True):
    """A parsed report: the groups by function, for each measure of the report."""

    measures: tuple[Measure, ...]
    groups: Mapping[str, Mapping[Step, FunctionGroup]]  # by the measure's name
    processes: tuple[str, ...]  # "name (pid)"
    notes: tuple[str, ...]  # one line for each ignored row, with the reason


def parse(data: bytes, name: str) -> CallerCalleeReport:
    """Parse a report.

    Args:
        data: The contents of the file.
        name: The name of the file, for messages.

    Raises:
        LocktopError: The file is not such a report; the message is one line with ``name``.
    """
    lines = _LINE_END.split(decode(data))  # no other character ends a line
    columns = _header(lines)
    if columns is None:
        raise LocktopError(
            f"{name} is no caller/callee report: no line has the titles Type and Function Name"
        )
    if not columns.measures:
        raise LocktopError(f"{name} has no inclusive and exclusive columns that are known")
    notes = _Notes()
    cells = list(_cells(lines, columns, notes))
    numbers = _NumberFormat(cells, columns)
    rows = [row for number, line in cells for row in _row(number, line, columns, numbers, notes)]
    if not any(row.type == 0 for row in rows):
        reason = (*notes.all(), "there is no row of a function itself")[0]
        raise LocktopError(f"{name} cannot be used: {reason}")
    return _report(rows, columns, notes)


def decode(data: bytes) -> str:
    """Return the text of a file, which may or may not begin with a mark of its encoding."""
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
    """Notes about ignored lines, up to a number."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._more = 0

    def add(self, line: int, reason: str) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes.append(clean(f"line {line} is left out: {reason}"))
        else:
            self._more += 1

    def all(self) -> tuple[str, ...]:
        more = (f"and {self._more} lines more are left out",) if self._more else ()
        return (*self._notes, *more)


# ---- columns ----


class _Columns:
    """The positions of the columns in a row."""

    def __init__(self, line: int, separator: str, titles: list[str]) -> None:
        """``line``: the number of the line with the titles."""
        self.line = line
        self.separator = separator
        self.numbers = {title: n for n, title in reversed(list(enumerate(titles))) if title}
        pairs = self._pairs(MEASURES) or self._pairs(_SHARES)
        self.measures = tuple(measure for measure, _ in pairs)
        self.pairs = tuple(pair for _, pair in pairs)
        names = self.numbers["type"], self.numbers["function name"]
        self.min_cells = 1 + max(*names, *map(max, self.pairs))

    def _pairs(self, measures: Iterable[Measure]) -> list[tuple[Measure, tuple[int, int]]]:
        pairs = []
        for measure in measures:
            first, second = self._find(measure.inclusive), self._find(measure.exclusive)
            if first is not None and second is not None:
                pairs.append((measure, (first, second)))
        return pairs

    def _find(self, titles: Iterable[str]) -> int | None:
        return next((self.numbers[title] for title in titles if title in self.numbers), None)

    def cell(self, cells: list[str], title: str) -> str:
        index = self.numbers.get(title)
        return cells[index].strip() if index is not None and index < len(cells) else ""


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
    """Yield the cells of each line. Each line is parsed alone: a missing quotation mark loses one
    line, not all lines after it."""
    for number, line in enumerate(lines[columns.line :], columns.line + 1):
        if not line.strip():
            continue
        cells = _split(line, columns.separator)
        if len(cells) < columns.min_cells:
            notes.add(number, f"it has {len(cells)} cells, {columns.min_cells} are needed")
        else:
            yield number, cells


# ---- numbers ----


class _NumberFormat:
    """The decimal mark of a report, point or comma; the other one separates thousands."""

    def __init__(self, cells: list[tuple[int, list[str]]], columns: _Columns) -> None:
        figures = [column for pair in columns.pairs for column in pair]
        # Percentages always have decimals and never thousands.
        figures += [column for title, column in columns.numbers.items() if title.endswith("%")]
        marks = Counter(filter(None, map(_decimal_mark, _texts(cells, figures))))
        # A comma that separates columns is not the decimal mark.
        default = "," if columns.separator == ";" else "."
        self.decimal = marks.most_common(1)[0][0] if marks else default
        thousands = _THOUSANDS + _other(self.decimal)
        self._groups = str.maketrans("", "", thousands)
        self._number = re.compile(
            rf"(?=[{self.decimal}]?[0-9])(?:[0-9]+|[0-9]{{1,3}}(?:[{thousands}][0-9]{{2,3}})*[{thousands}][0-9]{{3}})?"
            rf"(?:[{self.decimal}][0-9]*)?(?:[eE][+-]?[0-9]{{1,3}})?"
        )

    def number(self, text: str) -> float | None:
        """Return the number in a cell, None if there is no valid number."""
        text = _strip_percent(text)
        if not self._number.fullmatch(text):
            return None
        value = float(text.translate(self._groups).replace(self.decimal, "."))
        return value if value < 1e300 else None


def _other(mark: str) -> str:
    return "," if mark == "." else "."


def _strip_percent(text: str) -> str:
    return text.strip().rstrip("%").strip()


def _texts(cells: list[tuple[int, list[str]]], columns: list[int]) -> Iterator[str]:
    for _, row in cells:
        for n in columns:
            if n < len(row):
                yield _strip_percent(row[n])


def _decimal_mark(text: str) -> str:
    """Return the decimal mark if this text alone shows it, else "". Three digits follow a mark of
    thousands, and a text has at most one decimal mark."""
    mark = max(".,", key=text.rfind)
    mark_at = text.rfind(mark)
    if mark_at < 0:
        return ""
    if text.count(mark) > 1:
        return _other(mark)
    return mark if _other(mark) in text or len(text) - mark_at - 1 != 3 else ""


# ---- rows ----


class _ParsedRow(Struct):
    line: int
    type: int
    name: str
    module: str
    address: str
    root: str
    process: str
    location: SourceLine | None
    values: dict[str, tuple[float, float]] = field(default_factory=dict)


def _row(
    number: int, cells: list[str], columns: _Columns, numbers: _NumberFormat, notes: _Notes
) -> Iterator[_ParsedRow]:
    kind = _TYPES.get(columns.cell(cells, "type").casefold())
    name = clean(columns.cell(cells, "function name"))
    if kind is None:
        notes.add(number, f"type {columns.cell(cells, 'type')!r} is none of Root, Caller, Callee")
        return
    if not name:
        notes.add(number, "it names no function")
        return
    values = {}
    for measure, (first, second) in zip(columns.measures, columns.pairs, strict=True):
        inclusive, exclusive = numbers.number(cells[first]), numbers.number(cells[second])
        if inclusive is None or exclusive is None:
            wrong = cells[first] if inclusive is None else cells[second]
            notes.add(number, f"{wrong.strip()!r} is not a number of {measure.says}")
            return
        values[measure.name] = (inclusive, exclusive)
    process = " ".join(
        filter(None, (columns.cell(cells, "process name"), columns.cell(cells, "process id")))
    )
    yield _ParsedRow(
        line=number,
        type=kind,
        name=name,
        module=clean(columns.cell(cells, "module name")),
        address=columns.cell(cells, "function address"),
        root=clean(columns.cell(cells, "root function name")),
        process=clean(process),
        location=_location(cells, columns),
        values=values,
    )


def _location(cells: list[str], columns: _Columns) -> SourceLine | None:
    file = clean(columns.cell(cells, "source file"))
    line = columns.cell(cells, "function line number")
    if not file:
        return None
    return SourceLine(file, int(line) if line.isdecimal() and len(line) < 10 else 0)


# ---- groups ----


def _report(rows: list[_ParsedRow], columns: _Columns, notes: _Notes) -> CallerCalleeReport:
    steps = _Steps(rows)
    names = [measure.name for measure in columns.measures]
    sums: dict[Step, _Sums] = {}
    by_name: dict[str, Step] = {}
    current: Step | None = None
    for row in rows:
        if row.type == 0:
            current = steps.step(row)
            by_name.setdefault(row.name, current)
            sums.setdefault(current, _Sums()).add(0, current, row)
            continue
        if current is None or (row.root and row.root != current.name):
            current = by_name.get(row.root)
        if current is None:
            context = f"of {row.root}" if row.root else "before it"
            notes.add(row.line, f"{_TYPE_NAMES[row.type]} without a Root row {context}")
            continue
        sums[current].add(row.type, steps.step(row), row)
    return CallerCalleeReport(
        columns.measures,
        {
            name: {step: sum_of_step.group(name) for step, sum_of_step in sums.items()}
            for name in names
        },
        tuple(dict.fromkeys(row.process for row in rows if row.process)),
        notes.all(),
    )


class _Steps:
    """The steps of functions: name and module, and the address if several functions share these."""

    def __init__(self, rows: list[_ParsedRow]) -> None:
        addresses: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for row in rows:
            if row.type == 0:
                addresses[row.process, row.module, row.name].add(row.address)
        self._shared = {key for key, owners in addresses.items() if len(owners) > 1}
        self._processes = len({row.process for row in rows}) > 1

    def step(self, row: _ParsedRow) -> Step:
        shared = (row.process, row.module, row.name) in self._shared
        number = _address(row.address) if shared else 0
        if row.module == LOCK_MODULE:
            return Step(row.name, kind=StepKind.LOCK, number=number)
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
    """The rows of one group. Several rows of one function are added up."""

    def __init__(self) -> None:
        self._rows: tuple[dict[Step, list[_ParsedRow]], ...] = ({}, {}, {})

    def add(self, kind: int, step: Step, row: _ParsedRow) -> None:
        self._rows[kind].setdefault(step, []).append(row)

    def group(self, measure: str) -> FunctionGroup:
        own, callers, callees = (
            tuple(_sum_row(step, row, measure) for step, row in rows.items()) for rows in self._rows
        )
        return FunctionGroup(own[0], callers, callees)


def _sum_row(step: Step, rows: list[_ParsedRow], measure: str) -> FunctionRow:
    values = [row.values[measure] for row in rows]
    return FunctionRow(
        step=step,
        value=sum(inclusive for inclusive, _ in values),
        own=sum(exclusive for _, exclusive in values),
        location=next((row.location for row in rows if row.location is not None), None),
    )
