"""What watching costs on this machine: the benchmark program bare and with the library, in turns.

One round runs every flavour once, beginning with another one each time, so that what else the
machine does falls on all of them alike. A ratio is taken within a round, before the median.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from locktop.collector import launch
from locktop.collector.errors import LocktopError

BARE = "bare"
#: flavour -> (flavour of the library, LOCKTOP_LEVEL), in the order of the table
FLAVOURS: dict[str, tuple[str, str] | None] = {
    BARE: None,
    "nop": ("nop", ""),
    "dormant": ("", "dormant"),
    "default": ("", ""),
    "blocks": ("", "blocks"),
    "all": ("", "all"),
}
#: what is measured -> its key in the program's output, nanoseconds for a lock and unlock
MEASURES = {"uncontended": "uncontended_ns", "contended": "contended_ns"}


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the quartiles of one figure over all rounds."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One flavour and one measure."""

    measure: str  # a key of MEASURES
    flavour: str  # a key of FLAVOURS
    ns: Spread  # wall time for each pair of lock and unlock, nanoseconds
    ratio: Spread  # of ns to the bare run of the same round
    rounds: int


def run(
    rounds: int = 5, seconds: float = 0.5, progress: Callable[[int, int], None] | None = None
) -> list[Row]:
    """Measure every flavour ``rounds`` times, ``seconds`` for each measure.

    ``progress`` is called with the runs done and their number. Raises LocktopError when the
    benchmark program or the library is missing or fails, or a figure asked for makes no sense.
    """
    if rounds < 1 or not 0.001 <= seconds <= 3600:
        raise LocktopError("bench needs at least one round, and 0.001 to 3600 seconds for each")
    program = _program()
    environments = {flavour: _environment(flavour) for flavour in FLAVOURS}
    results: list[dict[str, dict[str, float]]] = []
    for number in range(rounds):
        results.append({})
        for turn, flavour in enumerate(_rotated(list(FLAVOURS), number)):
            results[-1][flavour] = _measure(program, environments[flavour], seconds)
            if progress:
                progress(number * len(FLAVOURS) + turn + 1, rounds * len(FLAVOURS))
    return [
        _row(measure, flavour, key, results)
        for measure, key in MEASURES.items()
        for flavour in FLAVOURS
    ]


def table(rows: Iterable[Row]) -> str:
    """Return the rows as lines of aligned text."""
    lines = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < _TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown."""
    rule = ["---"] * _TEXT_COLUMNS + ["---:"] * (len(_HEAD) - _TEXT_COLUMNS)
    return "\n".join(f"| {' | '.join(line)} |" for line in [_HEAD, rule, *map(_cells, rows)])


def as_json(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Return the rows as plain lists and dictionaries."""
    return [asdict(row) for row in rows]


_HEAD = ["mutex", "library", "ns/pair", "quartiles", "ratio", "quartiles"]
_TEXT_COLUMNS = 2


def _cells(row: Row) -> list[str]:
    return [
        row.measure,
        row.flavour,
        f"{row.ns.median:.1f}",
        f"{row.ns.low:.1f}-{row.ns.high:.1f}",
        f"{row.ratio.median:.2f}",
        f"{row.ratio.low:.2f}-{row.ratio.high:.2f}",
    ]


def _row(measure: str, flavour: str, key: str, results: list[dict[str, dict[str, float]]]) -> Row:
    return Row(
        measure,
        flavour,
        _spread([figures[flavour][key] for figures in results]),
        _spread([figures[flavour][key] / figures[BARE][key] for figures in results]),
        len(results),
    )


def _spread(figures: Sequence[float]) -> Spread:
    if len(figures) == 1:
        return Spread(figures[0], figures[0], figures[0])
    low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
    return Spread(low, median, high)


def _rotated(names: list[str], by: int) -> list[str]:
    by %= len(names)
    return names[by:] + names[:by]


def _program() -> Path:
    import locktop

    for directory in locktop.__path__:
        path = Path(directory) / "bin" / "locktop-bench"
        if path.is_file():
            return path.resolve()
    raise LocktopError("locktop-bench is missing from this installation; install locktop again")


def _environment(flavour: str) -> dict[str, str]:
    """Return the whole environment of a run; other people's preloads stay in all of them."""
    environment = {key: value for key, value in os.environ.items() if key != "LOCKTOP_LEVEL"}
    names = environment.pop("LD_PRELOAD", "").replace(":", " ").split()
    others = [name for name in names if not Path(name).name.startswith("liblocktop")]
    chosen = FLAVOURS[flavour]
    if chosen:
        library, level = chosen
        others.insert(0, str(launch.library(library)))
        if level:
            environment["LOCKTOP_LEVEL"] = level
    if others:
        environment["LD_PRELOAD"] = ":".join(others)
    return environment


def _measure(program: Path, environment: dict[str, str], seconds: float) -> dict[str, float]:
    command = [str(program), "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60 + 10 * seconds
        )
        figures = json.loads(done.stdout)
        return {key: float(figures[key]) for key in MEASURES.values()}
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        raise LocktopError(f"{program} failed: {error}") from error
