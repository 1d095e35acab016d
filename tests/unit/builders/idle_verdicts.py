"""Verdicts of idle rules about stacks of named functions."""

from __future__ import annotations

from locktop.collector.analysis.idle.rules import Rules, choose
from locktop.collector.model import Frame, Kind


def frames(*functions: str) -> tuple[Frame, ...]:
    """A stack of functions of the program, innermost first."""
    return tuple(Frame(0x10 + i, name, None, None, "app", i) for i, name in enumerate(functions))


def verdict(rules: Rules, kind: Kind, *stack: Frame, held: bool = False, **names: str) -> str:
    """The verdict about a wait, as "idle RULE" or "contended RULE"."""
    candidates = rules.candidates(kind, stack)
    found = choose(candidates, names.get("lock", ""), names.get("thread", ""), held)
    return f"{'idle' if found.idle else 'contended'} {found.name}"
