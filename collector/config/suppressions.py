"""Suppressions: potential deadlocks that a file beside the program declares impossible.

A line names functions and the reason:

    rebalance AND Account::transfer(*)  # transfer() never runs while accounts move

A name may have ``*`` for any text and ``?`` for one character. Functions match with or without
their arguments. A potential deadlock is suppressed if each name matches a function in its stacks.
Other threads may make the same deadlock possible by other stacks. Then a line must suppress each of
these ways.
The reason begins at the first ``#`` between blanks. A line that begins with ``#`` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import Confidence, OrderCycle, OrderWay, Snapshot

#: The name of the file, in the working directory.
FILE = ".locktop-suppressions"
_MAX_BYTES = 1 << 20
_AND = " AND "
_USAGE = "wanted is FUNCTION [AND FUNCTION ...]  # REASON"


class Suppression(Struct, frozen=True):
    """One line of the file."""

    functions: tuple[re.Pattern[str], ...]
    reason: str


def load(path: Path | None = None) -> tuple[Suppression, ...]:
    """Return the suppressions of a file.

    Args:
        path: The file; None for FILE, which need not exist.

    Raises:
        LocktopError: The file cannot be read, or a line is malformed.
    """
    name = Path(FILE) if path is None else path
    try:
        with name.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if path is None:
            return ()
        raise LocktopError(f"cannot read suppressions: there is no file {name}") from None
    except OSError as error:
        raise LocktopError(f"cannot read suppressions from {name}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise LocktopError(f"cannot read suppressions from {name}: it has over {_MAX_BYTES} bytes")
    return parse(data.decode(errors="replace"), str(name))


def parse(text: str, name: str) -> tuple[Suppression, ...]:
    """Return the suppressions in a text. ``name``: the name of the text in messages."""
    lines = enumerate(text.splitlines(), 1)
    return tuple(
        _suppression(line, f"{name}:{number}")
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#")
    )


def _suppression(line: str, where: str) -> Suppression:
    # A name may have a "#" itself: main::{lambda()#1}.
    functions, _, reason = re.sub(r"\s#(?=\s|$)", "\0", line, count=1).partition("\0")
    names = [name.strip() for name in functions.split(_AND)]
    if not reason.strip():
        raise LocktopError(f"{where}: there is no reason; {_USAGE}")
    if not all(re.search(r"[^*?\s]", name) for name in names):
        raise LocktopError(f"{where}: a function has no name; {_USAGE}")
    return Suppression(tuple(_pattern(name) for name in names), reason.strip())


def _pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob. Unlike a shell's glob, it has no brackets, because names of
    functions have brackets."""
    parts = ({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in glob)
    return re.compile("".join(parts), re.DOTALL)


def apply(snapshot: Snapshot, suppressions: Sequence[Suppression]) -> Snapshot:
    """Return the snapshot without the suppressed potential deadlocks.

    Args:
        snapshot: A snapshot whose functions have their names.
        suppressions: The suppressions of the user.
    """
    if not suppressions:
        return snapshot
    found = [_remaining(cycle, snapshot, suppressions) for cycle in snapshot.lock_order]
    kept = tuple(sorted((cycle for cycle in found if cycle is not None), key=_rank))
    suppressed = snapshot.lock_order_suppressed + found.count(None)
    return replace(snapshot, lock_order=kept, lock_order_suppressed=suppressed)


def _rank(cycle: OrderCycle) -> tuple[int, int]:
    return list(Confidence).index(cycle.confidence), len(cycle.edges)


def _remaining(
    cycle: OrderCycle, snapshot: Snapshot, suppressions: Sequence[Suppression]
) -> OrderCycle | None:
    """Return the cycle with the ways that are not suppressed, None if all are.

    A cycle of which some ways are not known is never suppressed.
    """
    all_ways = (OrderWay(cycle.edges, cycle.confidence, cycle.why), *cycle.ways)
    left = [way for way in all_ways if not _matches(way, snapshot, suppressions)]
    if not left and not cycle.ways_left_out:
        return None
    if not left or len(left) == len(all_ways):
        return cycle
    first = left[0]
    return replace(
        cycle,
        locks=tuple(edge.from_ for edge in first.edges),
        edges=first.edges,
        confidence=first.confidence,
        why=first.why,
        ways=tuple(left[1:]),
    )


def _matches(way: OrderWay, snapshot: Snapshot, suppressions: Sequence[Suppression]) -> bool:
    names = _functions(way, snapshot)
    return any(
        all(any(function.fullmatch(name) for name in names) for function in one.functions)
        for one in suppressions
    )


def _functions(way: OrderWay, snapshot: Snapshot) -> set[str]:
    frames = [frame for edge in way.edges for frame in snapshot.stacks.get(edge.stack, ())]
    frames += [snapshot.sites[edge.site] for edge in way.edges if edge.site in snapshot.sites]
    names = {frame.function for frame in frames}
    return (names | {name.partition("(")[0] for name in names}) - {""}
