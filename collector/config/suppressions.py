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

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.config import user_file
from locktop.collector.errors import LocktopError
from locktop.collector.model import Confidence, OrderCycle, OrderWay, Snapshot

#: The name of the file, in the working directory.
FILE = ".locktop-suppressions"
_AND = " AND "
_USAGE = "wanted is FUNCTION [AND FUNCTION ...]  # REASON"


class Suppression(Struct, frozen=True):
    """One line of the file."""

    functions: tuple[re.Pattern[str], ...]
    reason: str


def load(
    path: Path | None = None, warn: Callable[[str], None] = lambda _: None
) -> tuple[Suppression, ...]:
    """Return the suppressions of a file.

    Without ``path`` the file is FILE, which need not exist. Anybody may have put that file into the
    working directory, so root does not read it. A file that cannot be read suppresses nothing.

    Args:
        path: The file that the user named, None if the user named none.
        warn: Called with one line if FILE exists and is not read.

    Raises:
        LocktopError: The named file cannot be read, or a line is malformed.
    """
    try:
        if path is None and os.geteuid() == 0 and os.path.lexists(FILE):
            raise LocktopError(f"root reads {FILE} only with `--suppressions {FILE}`")
        data = user_file.read(path or Path(FILE), is_named=path is not None)
    except LocktopError as error:
        if path is not None:
            raise LocktopError(f"no suppressions: {error}") from None
        if not isinstance(error, user_file.FileMissingError):
            warn(f"no suppressions: {error}")
        return ()
    return parse(data.decode(errors="replace"), str(path or FILE))


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
    remaining = [_remaining(cycle, snapshot, suppressions) for cycle in snapshot.lock_order]
    kept = tuple(sorted((cycle for cycle in remaining if cycle is not None), key=_rank))
    suppressed = snapshot.lock_order_suppressed + remaining.count(None)
    return replace(snapshot, lock_order=kept, lock_order_suppressed=suppressed)


def _rank(cycle: OrderCycle) -> tuple[int, int]:
    return list(Confidence).index(cycle.confidence), len(cycle.edges)


def _remaining(
    cycle: OrderCycle, snapshot: Snapshot, suppressions: Sequence[Suppression]
) -> OrderCycle | None:
    """Return the cycle with the ways that are not suppressed, None if all are.

    A cycle of which some ways are not known is never suppressed.
    """
    all_ways = (
        OrderWay(edges=cycle.edges, confidence=cycle.confidence, why=cycle.why),
        *cycle.ways,
    )
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
        all(any(function.fullmatch(name) for name in names) for function in suppression.functions)
        for suppression in suppressions
    )


def _functions(way: OrderWay, snapshot: Snapshot) -> set[str]:
    frames = [frame for edge in way.edges for frame in snapshot.stacks.get(edge.stack, ())]
    frames += [snapshot.sites[edge.site] for edge in way.edges if edge.site in snapshot.sites]
    names = {frame.function for frame in frames}
    return (names | {name.partition("(")[0] for name in names}) - {""}
