"""A line of the screen: spans of text, each in a named style.

The names are those of ``STYLES``; a theme has their colours. A span costs the terminal about 40
bytes, so a line has few spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from locktop.tui.views.cells import fit, plain

#: Every style of a span, and what the style is for.
STYLES: dict[str, str] = {
    "text": "plain text",
    "dim": "idle, or of little interest",
    "label": "the name of a figure",
    "title": "the title of a panel",
    "rule": "lines between panels",
    "strong": "names of threads and locks",
    "waiting": "a thread that waits for a lock, a lock that threads wait for",
    "running": "a thread that runs",
    "holder": "the holder of a lock",
    "where": "a source location",
    "stuck": "a deadlock",
    "alert": "the deadlock banner",
    "key": "a key to press",
    "flag": "a state of the screen: paused, ended",
}

#: The marks of a row or a line with something inside: closed, open.
FOLD_MARKS = ("▸ ", "▾ ")

Span = tuple[str, str]
Line = tuple[Span, ...]


class FoldedLines(tuple[Span, ...]):
    """A line that stands for several lines. Where there is room, a widget shows these instead."""

    lines: tuple[Line, ...]

    def __new__(cls, line: Line, lines: Iterable[Line]) -> FoldedLines:
        """Make the line ``line``, which stands for ``lines``."""
        folded = super().__new__(cls, line)
        folded.lines = tuple(lines)
        return folded


class Fold(FoldedLines):
    """A line with ▸ that stands for further lines. Below it they are visible once it is open."""

    def __new__(cls, before: Iterable[Span], after: Iterable[Span], lines: Iterable[Line]) -> Fold:
        """Make the line of ``before``, a mark, and ``after``, with ``lines`` inside."""
        before, after = tuple(before), tuple(after)
        closed, opened = (make_line(*before, (mark, "key"), *after) for mark in FOLD_MARKS)
        fold = super().__new__(cls, closed, (opened, *lines))
        assert isinstance(fold, Fold)
        return fold


def unfolded(lines: Iterable[Line], has_room: bool = True, is_open: bool = True) -> Iterator[Line]:
    """Yield lines, and in place of a folded line the lines that it stands for.

    Args:
        lines: the lines.
        has_room: whether folded lines show what they stand for, other than each ``Fold``.
        is_open: the same of each ``Fold``.
    """
    for line in lines:
        opens = is_open if isinstance(line, Fold) else has_room
        if isinstance(line, FoldedLines) and opens:
            yield from unfolded(line.lines, has_room, is_open)
        else:
            yield line


def line_text(line: Line) -> str:
    """The text of a line, without styles."""
    return "".join(text for text, _ in line)


def merge(spans: Iterable[Span]) -> Line:
    """Join adjacent spans of one style and drop empty spans.

    Blanks take the style of the span before.
    """
    merged: list[Span] = []
    for text, style in spans:
        if not text:
            continue
        if merged and (merged[-1][1] == style or text.isspace()):
            merged[-1] = (merged[-1][0] + text, merged[-1][1])
        else:
            merged.append((text, style))
    return tuple(merged)


def make_line(*spans: Span | str) -> Line:
    """A line of spans, without unprintable characters. A string alone is in style ``text``."""
    return merge(
        (plain(run), "text") if isinstance(run, str) else (plain(run[0]), run[1]) for run in spans
    )


def cut(line: Line, width: int) -> Line:
    """``line`` in at most ``width`` cells, with an ellipsis where it is cut."""
    kept: list[Span] = []
    room = width
    for text, style in line:
        cells = cell_len(text)
        if cells > room:
            kept.append((fit(text, room), style))
            break
        kept.append((text, style))
        room -= cells
    return tuple(kept)


def head(line: Line, characters: int) -> Line:
    """The first ``characters`` of ``line``, without an ellipsis."""
    kept: list[Span] = []
    for text, style in line:
        kept.append((text[:characters], style))
        characters -= len(text)
        if characters <= 0:
            break
    return tuple(kept)


def changed_cells(new: Line, old: Line, width: int) -> int:
    """How many cells from the left have every difference of two lines of ``width`` cells."""
    left, before = _fill(new, width), _fill(old, width)
    while left and before:
        (text, style), (was, was_style) = left.pop(), before.pop()
        same = _same_at_the_end(text, was) if style == was_style else 0
        if same < len(text):
            left.append((text[: len(text) - same], style))
        if same < len(was):
            before.append((was[: len(was) - same], was_style))
        if same < min(len(text), len(was)):
            break
    return sum(cell_len(text) for text, _ in left)


def _fill(line: Line, width: int) -> list[Span]:
    """The spans of a line with blanks up to ``width``, in the style of its end."""
    spans = [run for run in line if run[0]]
    blanks = " " * (width - cell_len(line_text(line)))
    if blanks:
        text, style = spans.pop() if spans else ("", "text")
        spans.append((text + blanks, style))
    return spans


def _same_at_the_end(text: str, other: str) -> int:
    """How many characters two texts have in common at their ends."""
    if text.endswith(other) or other.endswith(text):
        return min(len(text), len(other))
    return next(count for count in range(len(text)) if text[-1 - count] != other[-1 - count])


def wrap(line: Line, width: int, indent: int) -> list[Line]:
    """``line`` in pieces of at most ``width`` cells, broken at blanks where possible.

    Each piece after the first begins with ``indent`` blanks.
    """
    if cell_len(line_text(line)) <= width:
        return [line]
    if width <= indent:
        return [cut(line, max(1, width))]
    pieces: list[Line] = []
    current: list[Span] = []
    room = width
    for word in _words(line):
        if cell_len(line_text(word)) > room and current:
            trimmed = _trim_blanks(word)
            if trimmed != word and cell_len(line_text(trimmed)) < room:
                word = ((" ", "text"), *trimmed)  # it fits after a single blank
            else:
                pieces.append(merge(current))
                current, room, word = [(" " * indent, "text")], width - indent, trimmed
        for text, style in word:
            while cell_len(text) > room:
                head = text[:1] if room < 1 else _head(text, room)
                current.append((head, style))
                pieces.append(merge(current))
                current, room, text = [(" " * indent, "text")], width - indent, text[len(head) :]
            current.append((text, style))
            room -= cell_len(text)
    return [*pieces, merge(current)]


def _words(line: Line) -> Iterator[Line]:
    """The words of a line with the blanks before them. A word may have several styles."""
    word: list[Span] = []
    for text, style in line:
        for blanks, letters in re.findall(r"(\s*)(\S*)", text):
            if blanks and any(not part.isspace() for part, _ in word):
                yield tuple(word)
                word = []
            word += [(part, style) for part in (blanks, letters) if part]
    if word:
        yield tuple(word)


def _trim_blanks(word: Line) -> Line:
    """``word`` from its first letter."""
    return tuple((text, style) for text, style in word if not text.isspace())


def _head(text: str, cells: int) -> str:
    """The beginning of ``text`` that fits into ``cells``, at least one character."""
    end = len(text)
    while end > 1 and cell_len(text[:end]) > cells:
        end -= 1
    return text[:end]
