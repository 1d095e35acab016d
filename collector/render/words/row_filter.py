"""The filter language of the lists: plain words, names by column, and figures by comparison.

    cache                       rows with this word
    lock:cache* thread:worker-* names by a pattern; without * ? or [ a part of the name is enough
    wait>10ms waiters>=3        figures
    !state:idle                 rows without it
    "std::mutex x"              one word with blanks

All terms must hold. The filter ignores the case of letters.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.model import Lock, Thread
from locktop.collector.render.words.nearest import question
from locktop.collector.render.words.snapshot_index import SnapshotIndex

Row = Lock | Thread

_TERM = re.compile(r'!?(?:"[^"]*"?|[^\s"])+')
_NAMED = re.compile(r"([a-z]+):(?!:)(.*)", re.DOTALL)
_COMPARED = re.compile(r"([a-z]+)(<=|>=|<|>|=)(.*)", re.DOTALL)
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|%|)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}


class RowFilter(Struct, frozen=True):
    """A filter. The empty one finds every row."""

    text: str = ""
    words: tuple[str, ...] = ()  # in lower case; each is in the text of a row
    terms: tuple[_Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.terms)

    def finds_words(self, text: str) -> bool:
        """Whether ``text`` has every plain word."""
        text = text.casefold()
        return all(word in text for word in self.words)

    def finds(self, index: SnapshotIndex, row: Row, text: str) -> bool:
        """Whether a row holds every term.

        Args:
            index: the snapshot.
            row: a lock or a thread of the snapshot.
            text: what the list shows of the row, for the plain words.
        """
        return self.finds_words(text) and all(term.holds(index, row) for term in self.terms)


class _Term(Struct, frozen=True):
    """A condition on one column."""

    test: Callable[[SnapshotIndex, Row], bool]
    is_negated: bool

    def holds(self, index: SnapshotIndex, row: Row) -> bool:
        return self.test(index, row) is not self.is_negated


def parse(text: str) -> RowFilter:
    """Return the filter that a text means.

    Raises:
        LocktopError: a column is not known, or its value is wrong; one line names the column.
    """
    words, terms = [], []
    for part in _TERM.findall(text):
        is_negated = part.startswith("!") and len(part) > 1
        term = part[is_negated:]
        test = _test(term)
        if test is None and not is_negated:
            words.append(term.strip('"').casefold())
        else:
            terms.append(_Term(test or _negated_name(term.strip('"')), is_negated))
    return RowFilter(text.strip(), tuple(filter(None, words)), tuple(terms))


def _test(term: str) -> Callable[[SnapshotIndex, Row], bool] | None:
    """The condition of a term with a column; None for a plain word."""
    if term.startswith('"'):
        return None
    compared = _COMPARED.fullmatch(term)
    if compared is not None and compared[1] not in (*_NAMES, *_FIGURES):
        if not _NUMBER.fullmatch(compared[3]):
            return None  # such as vector<int>
        raise _unknown(compared[1])
    if compared is not None:
        return _comparison(*compared.groups())
    named = _NAMED.fullmatch(term)
    if named is None:
        return None
    column, pattern = named[1], named[2].strip('"').casefold()
    if column in _FIGURES:
        raise LocktopError(f"{column} needs a comparison, as {column}>{_FIGURES[column].example}")
    if column not in _NAMES:
        raise _unknown(column)
    if not pattern:
        raise LocktopError(f"{column}: needs a name after the colon")
    names = _NAMES[column]
    return lambda index, row: any(_fits(name, pattern) for name in names(index, row))


def _comparison(column: str, sign: str, value: str) -> Callable[[SnapshotIndex, Row], bool]:
    if column in _NAMES:
        raise LocktopError(f"{column} needs a name, as {column}:cache*")
    figure, compare = _FIGURES[column], _OPERATORS[sign]
    limit = _number(column, value, figure)

    def test(index: SnapshotIndex, row: Row) -> bool:
        value = figure.value(index, row)
        return value is not None and compare(value, limit)

    return test


def _number(column: str, text: str, figure: _Figure) -> float:
    match = _NUMBER.fullmatch(text)
    unit = match[2] if match is not None else ""
    if match is not None and figure.is_time and unit in _UNITS:
        return float(match[1]) * _UNITS[unit]
    if match is not None and figure.is_share and unit == "%":
        return float(match[1]) / 100
    if match is not None and not (figure.is_time or figure.is_share or unit):
        return float(match[1])
    raise LocktopError(f"{column}: {text!r} is wrong; {column}>{figure.example} is right")


def _unknown(column: str) -> LocktopError:
    names = [*_NAMES, *_FIGURES]
    return LocktopError(f"no column {column!r}: {', '.join(names)}{question(column, names)}")


def _fits(name: str, pattern: str) -> bool:
    name = name.casefold()
    return fnmatchcase(name, pattern) if set(pattern) & set("*?[") else pattern in name


def _negated_name(word: str) -> Callable[[SnapshotIndex, Row], bool]:
    """A plain word that is negated: in no name of the row."""
    pattern = word.casefold()

    def test(index: SnapshotIndex, row: Row) -> bool:
        return any(_fits(name, pattern) for names in _NAMES.values() for name in names(index, row))

    return test


# ---- the columns ----


def _locks(index: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Lock):
        return (index.lock_name(row.id),)
    waited = [row.waiting_for.lock] if row.waiting_for is not None else []
    return [index.lock_name(lock) for lock in (*waited, *(held.lock for held in row.holds))]


def _threads(index: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Thread):
        return (row.name, str(row.tid))
    return [index.thread_name(tid) for tid in (*row.holders, *row.waiters)]


def _holders(index: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Lock):
        return [index.thread_name(tid) for tid in row.holders]
    wait = row.waiting_for
    return [index.thread_name(tid) for tid in wait.holders] if wait is not None else ()


def _waiters(index: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Lock):
        return [index.thread_name(tid) for tid in row.waiters]
    return (row.name,) if row.waiting_for is not None else ()


def _kinds(_: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Lock):
        return (row.kind.value,)
    return (row.waiting_for.kind.value,) if row.waiting_for is not None else ()


def _states(index: SnapshotIndex, row: Row) -> Iterable[str]:
    if isinstance(row, Thread):
        stuck = ("deadlocked",) if row.tid in index.stuck_threads else ()
        return (row.state.value, *stuck)
    states = [word for word, is_so in (("held", row.holders), ("waited", row.waiters)) if is_so]
    return [*states, *(["deadlocked"] if row.id in index.stuck_locks else ["idle"] * row.idle)]


_NAMES: dict[str, Callable[[SnapshotIndex, Row], Iterable[str]]] = {
    "lock": _locks,
    "thread": _threads,
    "kind": _kinds,
    "holder": _holders,
    "waiter": _waiters,
    "state": _states,
}


class _Figure(Struct, frozen=True):
    """A column of figures."""

    value: Callable[[SnapshotIndex, Row], float | None]  # None: not measured
    example: str
    is_time: bool = False
    is_share: bool = False


def _wait(index: SnapshotIndex, row: Row) -> float | None:
    if isinstance(row, Thread):
        return row.waiting_for.duration_s if row.waiting_for is not None else None
    waits = (index.threads[tid].waiting_for for tid in row.waiters if tid in index.threads)
    return max((wait.duration_s for wait in waits if wait is not None), default=None)


def _held_s(index: SnapshotIndex, row: Row) -> float | None:
    if isinstance(row, Thread):
        times = [held.duration_s for held in row.holds]
    else:
        holds = (index.held(tid, row.id) for tid in row.holders)
        times = [held.duration_s for held in holds if held is not None]
    return max((time for time in times if time is not None), default=None)


def _waited_s(_: SnapshotIndex, row: Row) -> float | None:
    return row.counted_wait_s if isinstance(row, Lock) else sum(row.wait_s.values())


_FIGURES: dict[str, _Figure] = {
    "wait": _Figure(_wait, "10ms", is_time=True),
    "held": _Figure(_held_s, "10ms", is_time=True),
    "waited": _Figure(_waited_s, "1s", is_time=True),
    "max": _Figure(
        lambda _, row: row.wait_max_s if isinstance(row, Lock) else None, "10ms", is_time=True
    ),
    "waiters": _Figure(
        lambda _, row: float(len(row.waiters)) if isinstance(row, Lock) else None, "3"
    ),
    "holds": _Figure(
        lambda _, row: float(len(row.holds if isinstance(row, Thread) else row.holders)), "0"
    ),
    "contended": _Figure(lambda _, row: row.contended, "100"),
    "cpu": _Figure(
        lambda _, row: row.cpu_share if isinstance(row, Thread) else None, "50%", is_share=True
    ),
}
