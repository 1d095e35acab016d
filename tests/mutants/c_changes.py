"""The changes of a C file: comparisons, conditions, returns and sums, token by token."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from mutants.change import Change
from mutants.operators import AUGMENTED_SUMS, COMPARISONS, SUMS

_TOKEN = re.compile(
    r"(?P<nothing>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*)"
    r"|(?P<value>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*)"
    r"|(?P<operator><<=|>>=|->|\+\+|--|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||[^\w\s])",
    re.DOTALL | re.MULTILINE,
)
_BOOLEANS = {"&&": ("||",), "||": ("&&",)}
_STEPS = {"++": ("--",), "--": ("++",)}
_OPERATORS = {**COMPARISONS, **_BOOLEANS, **AUGMENTED_SUMS, **_STEPS}
_RETURNS = {"true": "false", "false": "true", "0": "1", "NULL": ""}
_KEYWORDS = {"return", "case", "sizeof"}
_OPEN, _CLOSE = "([{", ")]}"


class _Token(msgspec.Struct, frozen=True):
    start: int
    end: int
    text: str
    is_value: bool


def c_changes(path: str, text: str) -> list[Change]:
    """Return the changes in the order of the file; not every one of them compiles."""
    tokens = [
        _Token(found.start(), found.end(), found.group(), found.lastgroup == "value")
        for found in _TOKEN.finditer(text)
        if found.lastgroup != "nothing"
    ]
    return list(_Source(path, text, tokens).changes())


class _Source:
    def __init__(self, path: str, text: str, tokens: list[_Token]) -> None:
        self._path, self._text, self._tokens = path, text, tokens

    def changes(self) -> Iterator[Change]:
        """Yield the changes that begin at each token."""
        for at, token in enumerate(self._tokens):
            others = _OPERATORS.get(token.text, ())
            if token.text in SUMS and self._is_after_value(at):
                others = SUMS[token.text]
            for other in others:
                yield Change(self._path, token.start, token.end, other)
            if token.text in ("if", "while"):
                yield from self._negated(at + 1)
            if token.text == "?":
                yield self._exchanged(at)
            if token.text == "return":
                yield from self._return(at)

    def _is_after_value(self, at: int) -> bool:
        before = self._tokens[at - 1]
        return before.text in (")", "]") or (before.is_value and before.text not in _KEYWORDS)

    def _negated(self, opening: int) -> Iterator[Change]:
        """Yield the change of a condition, but for a comparison: its operator has the same."""
        closing = self._end(opening + 1, ")")
        operators = {token.text for token in self._tokens[opening:closing]}
        if operators & COMPARISONS.keys() and not operators & _BOOLEANS.keys():
            return
        start, end = self._tokens[opening].end, self._tokens[closing].start
        yield Change(self._path, start, end, f"!({self._text[start:end]})")

    def _exchanged(self, question: int) -> Change:
        """Return ``condition ? b : a``."""
        colon = self._end(question + 1, ":")
        end = self._end(colon + 1, ",;:)]}")
        one, other = self._span(question + 1, colon), self._span(colon + 1, end)
        new = f"({self._text[other[0] : other[1]]}) : ({self._text[one[0] : one[1]]})"
        return Change(self._path, one[0], other[1], new)

    def _return(self, at: int) -> Iterator[Change]:
        end = self._end(at + 1, ";")
        if end == at + 1:  # the function goes on
            yield Change(self._path, self._tokens[at].start, self._tokens[at].end, "")
            return
        start, stop = self._span(at + 1, end)
        if new := _RETURNS.get(self._text[start:stop], "0"):
            yield Change(self._path, start, stop, new)

    def _span(self, first: int, end: int) -> tuple[int, int]:
        return self._tokens[first].start, self._tokens[end - 1].end

    def _end(self, at: int, ends: str) -> int:
        """Return the first token among ``ends`` that is in no bracket and no other ``?:``."""
        depth = 0
        while depth or self._tokens[at].text not in ends:
            text = self._tokens[at].text
            if text in _OPEN or text == "?":
                depth += 1
            elif text in _CLOSE or text == ":":
                depth -= 1
            at += 1
        return at
