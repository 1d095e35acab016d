"""The docstrings and comments of source files, in a form that ``support.documents`` reads."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.documents import ROOT

PYTHON = {".py"}
C = {".c", ".h", ".cc", ".def"}

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$")
_ITEM = re.compile(r"^ {4}(\*{0,2}\w+: )")
_DIRECTIVE = re.compile(r"^(!|noqa\b|type: |fmt: |ruff: |mypy: |pragma\b|clang-format )")
#: A row of a list or a drawing in columns.
_ALIGNED = re.compile(r"^.*\S {3,}\S.*$|^ {3,}\S.*$")
_C_TOKEN = re.compile(
    r'(?P<string>R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|/\*(?P<block>(?:.|\n)*?)\*/|//(?P<line>[^\n]*)"
)


@dataclass(frozen=True)
class Comment:
    """A comment as it stands in a file: its first line, first column and last line."""

    line: int
    column: int
    last_line: int
    text: str
    follows_code: bool


@cache
def syntax_nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a Python file, the module first. Several readers share them."""
    return tuple(ast.walk(ast.parse(source)))


def source_files(roots: Iterable[str]) -> list[Path]:
    """Return the files of Python and C in ``roots``, as paths below the root."""
    paths = (path for root in roots for path in (ROOT / root).rglob("*"))
    return sorted(path.relative_to(ROOT) for path in paths if path.suffix in PYTHON | C)


def texts(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a file, each with its first line."""
    if path.suffix in PYTHON:
        yield from docstrings(source)
        yield from joined(python_comments(source))
    else:
        yield from joined(c_comments(source))


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a Python file as Markdown, each with its first line."""
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in syntax_nodes(source):
        if isinstance(node, owners) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, "\n".join(_markdown(text))


def _markdown(docstring: str) -> Iterator[str]:
    """Yield the lines of a docstring, with the items of its sections as list items."""
    in_section = False
    for line in docstring.splitlines():
        if not line.startswith(" "):
            in_section = _SECTION.match(line) is not None
        if _SECTION.match(line):
            yield ""
        else:
            yield _ITEM.sub(r"- \1", line) if in_section else line


def python_comments(source: str) -> Iterator[Comment]:
    """Yield the comments of a Python file, each line for itself."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string.lstrip("#:").strip()
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(text):
            line, column = token.start
            yield Comment(line, column, line, text, bool(token.line[:column].strip()))


def c_comments(source: str) -> Iterator[Comment]:
    """Yield the comments of a file of C, with the stars and blanks in front of lines removed."""
    for token in _C_TOKEN.finditer(source):
        if token["string"] is not None:
            continue
        raw = token["line"] if token["block"] is None else token["block"]
        stripped = (re.sub(r"^\s*\* ?", "", line).rstrip() for line in raw.split("\n"))
        text = "\n".join(_ALIGNED.sub(r"\n\g<0>\n", line) for line in stripped)
        if not _DIRECTIVE.match(text.strip()):
            start = source.rfind("\n", 0, token.start()) + 1
            before = source[start : token.start()]
            line = source.count("\n", 0, start) + 1
            last = line + raw.count("\n")
            yield Comment(line, len(before), last, text.strip(), bool(before.strip()))


def joined(comments: Iterable[Comment]) -> Iterator[tuple[int, str]]:
    """Yield texts: a comment and the comments that go on below it in the same column."""
    first: Comment | None = None
    text, last = "", 0
    for comment in comments:
        goes_on = first and comment.line == last + 1 and comment.column == first.column
        if first and goes_on and not comment.follows_code:
            text += "\n" + comment.text
        else:
            if first:
                yield first.line, text
            first, text = comment, comment.text
        last = comment.last_line
    if first:
        yield first.line, text
