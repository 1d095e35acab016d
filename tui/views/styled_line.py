"""A line of the screen: runs of text, each in a named style.

The names are those of ``STYLES``; what they look like is the theme's affair. A run costs
about 40 bytes on the wire, so a line has few of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from locktop.tui.views.cells import fit, plain

#: Every style a run may name, with what it means.
STYLES: dict[str, str] = {
    "text": "what is to be read",
    "dim": "idle, or beside the point",
    "label": "the name of a figure",
    "title": "the title of a panel",
    "rule": "lines that part things",
    "strong": "names of threads and locks",
    "waiting": "a thread that waits for a lock, a lock that is waited for",
    "running": "a thread that runs",
    "holder": "who holds it",
    "where": "a place in the code",
    "stuck": "a deadlock",
    "alarm": "the deadlock banner",
    "key": "a key to press",
    "flag": "a state of the screen: paused, ended",
}

Span = tuple[str, str]
Line = tuple[Span, ...]


def line_text(line: Line) -> str:
    """The bare text of a line."""
    return "".join(text for text, _ in line)


def merge(spans: Iterable[Span]) -> Line:
    """Join neighbours of one style and drop empty runs; blanks take the style before them."""
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
    """A line of free text; a bare string is in style ``text``; unprintable characters go."""
    return merge(
        (plain(run), "text") if isinstance(run, str) else (plain(run[0]), run[1]) for run in spans
    )


def cut(line: Line, width: int) -> Line:
    """``line`` in at most ``width`` cells, with an ellipsis where it was cut."""
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


def changed_cells(new: Line, old: Line, width: int) -> int:
    """How many cells from the left hold all that differs between two lines of ``width`` cells."""
    left, before = _filled(new, width), _filled(old, width)
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


def _filled(line: Line, width: int) -> list[Span]:
    """The runs of a line; blanks after it have the style of its end."""
    spans = [run for run in line if run[0]]
    blanks = " " * (width - cell_len(line_text(line)))
    if blanks:
        text, style = spans.pop() if spans else ("", "text")
        spans.append((text + blanks, style))
    return spans


def _same_at_the_end(text: str, other: str) -> int:
    """How many characters the ends of two texts have in common."""
    if text.endswith(other) or other.endswith(text):
        return min(len(text), len(other))
    return next(at for at in range(len(text)) if text[-1 - at] != other[-1 - at])


def wrap(line: Line, width: int, indent: int) -> list[Line]:
    """``line`` in pieces of at most ``width`` cells, broken at blanks where there are any.

    All but the first piece begin with ``indent`` blanks.
    """
    if width <= indent or cell_len(line_text(line)) <= width:
        return [cut(line, max(1, width))]
    pieces: list[Line] = []
    current: list[Span] = []
    room = width
    for word in _words(line):
        if cell_len(line_text(word)) > room and current:
            bare = _without_blanks(word)
            if bare != word and cell_len(line_text(bare)) < room:
                word = ((" ", "text"), *bare)  # it was only far away
            else:
                pieces.append(merge(current))
                current, room, word = [(" " * indent, "text")], width - indent, bare
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
    """The words of a line, each with the blanks before it; one may be of several styles."""
    word: list[Span] = []
    for text, style in line:
        for blanks, letters in re.findall(r"(\s*)(\S*)", text):
            if blanks and any(not part.isspace() for part, _ in word):
                yield tuple(word)
                word = []
            word += [(part, style) for part in (blanks, letters) if part]
    if word:
        yield tuple(word)


def _without_blanks(word: Line) -> Line:
    """``word`` from its first letter."""
    return tuple((text, style) for text, style in word if not text.isspace())


def _head(text: str, cells: int) -> str:
    """As much of ``text`` as fits into ``cells``, at least one character."""
    end = len(text)
    while end > 1 and cell_len(text[:end]) > cells:
        end -= 1
    return text[:end]
