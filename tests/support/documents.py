"""The documents of the project, taken apart for tests: prose, inline code, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^\s*(```|~~~)")
_INDENTED = re.compile(r"^ {4}")
_LIST_ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.*)$")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
#: Names in small letters may begin a sentence too, and so may a quotation and a parameter.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')*_]*\s+"
    r"(?=[\"'(*_]*(?:[A-Z0-9\[]|(?:locktop|glibc|libc|msgspec|pyelftools|pystack|systemd)\b)"
    r"|\w+(?:[._(]|: )|\"\w)"
)
_WORD = re.compile(r"\S*\w\S*")


@dataclass(frozen=True)
class Line:
    """One line of a document that is no code block. Lines count from 1."""

    number: int
    text: str

    @property
    def is_table_row(self) -> bool:
        """Tell whether the line belongs to a table."""
        return self.text.lstrip().startswith("|")


def documents() -> list[Path]:
    """Return the documents that people read, as paths below the root."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(path.relative_to(ROOT) for path in paths)


def lines(text: str) -> Iterator[Line]:
    """Yield the lines that are neither code nor comment."""
    return (line for line, is_code in _all_lines(text) if not is_code)


def code_lines(text: str) -> Iterator[Line]:
    """Yield the lines of code blocks."""
    return (line for line, is_code in _all_lines(text) if is_code)


def _all_lines(text: str) -> Iterator[tuple[Line, bool]]:
    """Yield each line and whether it is code, without the fences around code.

    A line with four blanks in front after an empty line is code, as Markdown defines.
    """
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    fence, before_is_empty = "", True
    for number, line in enumerate(text.splitlines(), 1):
        marker = _FENCE.match(line)
        if marker and (not fence or marker[1] == fence):
            fence = "" if fence else marker[1]
            continue
        is_code = bool(fence or (before_is_empty and _INDENTED.match(line)))
        before_is_empty = is_code or not line.strip()
        yield Line(number, line), is_code


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, list items, headings and cells of tables, each with its first line."""
    first, collected = 0, ""
    for line in lines(text):
        ends = line.is_table_row or not line.text.strip() or _HEADING.match(line.text)
        if collected and (ends or _LIST_ITEM.match(line.text)):
            yield first, collected
            collected = ""
        if line.is_table_row:
            if not _TABLE_RULE.match(line.text):
                yield from ((line.number, cell) for cell in _CELL_BORDER.split(line.text))
        elif heading := _HEADING.match(line.text):
            yield line.number, heading[1]
        elif line.text.strip():
            first = first if collected else line.number
            collected += " " + _LIST_ITEM.sub("", line.text).strip()
    if collected:
        yield first, collected


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences, each with the first line of its block. Inline code is one word."""
    for number, block in blocks(text):
        plain = _LINK.sub(r"\1", _CODE.sub("CODE", block))
        for sentence in _SENTENCE_END.split(plain):
            if sentence.strip():
                yield number, sentence.strip()


def word_count(sentence: str) -> int:
    """Count the words: texts between blanks with a letter or a digit."""
    return len(_WORD.findall(sentence))


def inline_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield inline code, with the first line of its block."""
    for number, block in blocks(text):
        yield from ((number, match[2]) for match in _CODE.finditer(block))


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the targets of links and pictures, with the line of their block."""
    for number, block in blocks(text):
        plain = _CODE.sub("CODE", block)
        yield from ((number, match[2]) for match in _LINK.finditer(plain))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of the headings."""
    anchors = set()
    for line in lines(text):
        if heading := _HEADING.match(line.text):
            plain = _LINK.sub(r"\1", heading[1]).lower()
            anchors.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return anchors
