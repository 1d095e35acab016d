"""The levels at which the library can work in a process, and what each does and costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """One level. Each level does what the level before it does, and more."""

    name: str
    does: str
    costs: str  # times a plain pair of lock and unlock, without contention; about


LEVELS: tuple[Level, ...] = (
    Level("dormant", "nothing: the hooks call straight through", "1.0x"),
    Level("counting", "counters, who holds, who waits; no stacks, no records", "1.3x"),
    Level("contended", "also stacks, and a record of each wait (default)", "1.3x"),
    Level("blocks", "also a record of each hold that somebody waited for", "2.3x"),
    Level("all", "also a record of every other hold", "3.8x"),
)
NAMES = tuple(level.name for level in LEVELS)


def described() -> str:
    """Return all levels, one a line, indented."""
    return "\n".join(f"  {level.name:<10} {level.costs:>4}  {level.does}" for level in LEVELS)
