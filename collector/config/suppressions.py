"""Potential deadlocks that are known to be none: a file beside the program says which, and why.

A line names functions and the reason:

    rebalance AND Account::transfer(*)  # transfer() never runs while accounts move

The names may have ``*`` for any text and ``?`` for one character, and stand with or without their
arguments. A potential deadlock is left out if each of the names is one of a function in its stacks.
The reason begins at the first ``#`` between blanks; a line that begins with one is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import OrderCycle, Snapshot

#: What is looked for where the tool is run.
FILE = ".locktop-suppressions"
_LARGEST = 1 << 20
_AND = " AND "
_USAGE = "wanted is FUNCTION [AND FUNCTION ...]  # REASON"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line."""

    functions: tuple[re.Pattern[str], ...]
    reason: str


def load(path: Path | None = None) -> tuple[Rule, ...]:
    """Return the rules of a file; without ``path`` those of FILE, if there is one. Raises
    LocktopError for a file that cannot be read, and for a line that is no rule."""
    name = Path(FILE) if path is None else path
    try:
        with name.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        if path is None:
            return ()
        raise LocktopError(f"cannot read suppressions: there is no file {name}") from None
    except OSError as error:
        raise LocktopError(f"cannot read suppressions from {name}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise LocktopError(f"cannot read suppressions from {name}: it has over {_LARGEST} bytes")
    return parse(data.decode(errors="replace"), str(name))


def parse(text: str, name: str) -> tuple[Rule, ...]:
    """Return the rules of a text; ``name`` is what an error calls it."""
    lines = enumerate(text.splitlines(), 1)
    return tuple(
        _rule(line, f"{name}:{number}")
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#")
    )


def _rule(line: str, where: str) -> Rule:
    # Names may have a "#" of their own: main::{lambda()#1}.
    functions, _, reason = re.sub(r"\s#(?=\s|$)", "\0", line, count=1).partition("\0")
    names = [name.strip() for name in functions.split(_AND)]
    if not reason.strip():
        raise LocktopError(f"{where}: there is no reason; {_USAGE}")
    if not all(re.search(r"[^*?\s]", name) for name in names):
        raise LocktopError(f"{where}: a function has no name; {_USAGE}")
    return Rule(tuple(_pattern(name) for name in names), reason.strip())


def _pattern(glob: str) -> re.Pattern[str]:
    """Other than a shell's it has no brackets, which names of functions have."""
    parts = ({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in glob)
    return re.compile("".join(parts), re.DOTALL)


def applied(snapshot: Snapshot, rules: Sequence[Rule]) -> Snapshot:
    """Return the snapshot without the potential deadlocks that ``rules`` leave out. Functions must
    have their names by then."""
    kept = tuple(cycle for cycle in snapshot.lock_order if not _is_left_out(cycle, snapshot, rules))
    left_out = len(snapshot.lock_order) - len(kept)
    if not left_out:
        return snapshot
    suppressed = snapshot.lock_order_suppressed + left_out
    return replace(snapshot, lock_order=kept, lock_order_suppressed=suppressed)


def _is_left_out(cycle: OrderCycle, snapshot: Snapshot, rules: Sequence[Rule]) -> bool:
    names = _functions(cycle, snapshot) if rules else set()
    return any(
        all(any(function.fullmatch(name) for name in names) for function in rule.functions)
        for rule in rules
    )


def _functions(cycle: OrderCycle, snapshot: Snapshot) -> set[str]:
    frames = [frame for edge in cycle.edges for frame in snapshot.stacks.get(edge.stack, ())]
    frames += [snapshot.sites[edge.site] for edge in cycle.edges if edge.site in snapshot.sites]
    names = {frame.function for frame in frames}
    return (names | {name.partition("(")[0] for name in names}) - {""}
