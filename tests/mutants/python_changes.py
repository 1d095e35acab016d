"""The changes of a Python file: comparisons, conditions, returns and sums, each by its position."""

from __future__ import annotations

import ast
import io
import itertools
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Mapping

from mutants.change import Change
from mutants.operators import AUGMENTED_SUMS, COMPARISONS, SUMS

_COMPARISONS = {
    **COMPARISONS,
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
_BOOLEANS = {"and": ("or",), "or": ("and",)}
_SUMS = {**SUMS, **AUGMENTED_SUMS}
_RETURNS = {"True": "False", "False": "True"}


def python_changes(path: str, text: str) -> list[Change]:
    """Return each change of the file once, in the order of the nodes."""
    source = _Source(path, text)
    return list(dict.fromkeys(source.changes(ast.parse(text))))


class _Source:
    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._line_starts = [0]
        for line in text.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._lines = text.splitlines()
        self._tokens = [
            (self._line_starts[row - 1] + column, token.string)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in (tokenize.OP, tokenize.NAME)
            for row, column in [token.start]
        ]

    def changes(self, node: ast.AST) -> Iterator[Change]:
        """Yield the changes of a node and of the nodes in it, but of no types and no f-strings.

        Python 3.11 does not say where the parts of an f-string stand.
        """
        if isinstance(node, ast.JoinedStr):
            return
        yield from self._own_changes(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_for_types(child):
                    yield from self.changes(child)

    def _own_changes(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for left, right in itertools.pairwise(operands):
                    yield from self._operator(left, right, _COMPARISONS)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._operator(left, right, _BOOLEANS)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield from self._operator(node.left, node.right, _SUMS)
            case ast.AugAssign(op=ast.Add() | ast.Sub()):
                yield from self._operator(node.target, node.value, _SUMS)
            case ast.Return(value=ast.expr() as value):
                yield from self._return(value)
        for test in _conditions(node):
            yield self._negated(test)

    def _operator(
        self, left: ast.expr, right: ast.expr, others: Mapping[str, tuple[str, ...]]
    ) -> Iterator[Change]:
        """Yield the changes of the operator, which stands between its operands."""
        found = [
            (start, string)
            for start, string in self._between(self._end(left), self._start(right))
            if string not in "()"
        ]
        start, operator = found[0][0], " ".join(string for _, string in found)
        end = found[-1][0] + len(found[-1][1])
        for other in others[operator]:
            yield Change(self._path, start, end, other)

    def _between(self, start: int, end: int) -> list[tuple[int, str]]:
        first = bisect_left(self._tokens, (start, ""))
        return self._tokens[first : bisect_left(self._tokens, (end, ""))]

    def _return(self, value: ast.expr) -> Iterator[Change]:
        start, end = self._start(value), self._end(value)
        old = self._text[start:end]
        if old != "None":
            yield Change(self._path, start, end, _RETURNS.get(old, "None"))

    def _negated(self, test: ast.expr) -> Change:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            # Brackets around the operand are no part of it.
            start, operand = self._start(test), self._text[self._start(test) + len("not") :]
            end = len(self._text) - len(operand.lstrip())
            return Change(self._path, start, end, "")
        start, end = self._start(test), self._end(test)
        return Change(self._path, start, end, f"(not ({self._text[start:end]}))")

    def _start(self, node: ast.expr) -> int:
        return self._position(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._position(node.end_lineno, node.end_col_offset)

    def _position(self, line: int, column_in_bytes: int) -> int:
        before = self._lines[line - 1].encode()[:column_in_bytes]
        return self._line_starts[line - 1] + len(before.decode())


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Return the conditions in a node, but for a comparison: its operator has the same change."""
    found: list[ast.expr] = []
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            found = [node.test]
        case ast.comprehension():
            found = node.ifs
        case ast.match_case(guard=ast.expr() as guard):
            found = [guard]
    return [test for test in found if not isinstance(test, ast.Compare) or len(test.ops) > 1]


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
