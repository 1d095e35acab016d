"""Textual's style sheets, parsed once for all apps of a run of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet

_parse_rules: Callable[..., list[Any]] = Stylesheet._parse_rules
_parsed: dict[tuple[object, ...], list[Any]] = {}


def keep_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let apps share the rules of equal text and equal variables, which no app changes."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", _rules)


def _rules(sheet: Stylesheet, *values: Any, **named: Any) -> list[Any]:
    key = (values, tuple(named.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, *values, **named)
    return _parsed[key]
