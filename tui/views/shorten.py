"""Long names in little room: the beginning and the end stay, for there names differ."""

from __future__ import annotations

import re
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from locktop.collector.model import Frame
from locktop.collector.render.words.source_location import short_location, shortest_location
from locktop.tui.views.cells import plain

#: As in ``index_[abi:cxx11]``: the C++ library that the function was built for.
_ABI_TAG = re.compile(r"\[abi:\w+\]")


def middle(text: str, room: int) -> str:
    """``text`` in at most ``room`` cells, with an ellipsis in its middle where it is longer."""
    text = plain(text)
    if cell_len(text) > room:
        text = _ABI_TAG.sub("", text)
    if cell_len(text) <= room:
        return text
    if room < 3:
        return "…"[: max(0, room)]
    tail = text[-(room // 2) :]
    while cell_len(tail) > room // 2:
        tail = tail[1:]
    tail = _from_a_word(text, tail, room)
    return set_cell_size(text, room - 1 - cell_len(tail)).rstrip() + "…" + tail


def _from_a_word(text: str, tail: str, room: int) -> str:
    """``tail``, the end of ``text``, from the begin of a word on: part of a name misleads.

    The word stays whole if there is room for it. Else the tail loses the rest of that word, unless
    little would be left.
    """
    tail_begin = len(text) - len(tail)
    begin = tail_begin
    while 0 < begin < len(text) and text[begin - 1].isalnum() and text[begin].isalnum():
        begin -= 1
    if begin == tail_begin or cell_len(text[begin:]) <= room - 1:
        return text[begin:]
    end = tail_begin
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[end:] if len(text) - end > len(tail) // 2 else tail


def fit_middle(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells: cut in its middle or filled with blanks."""
    return set_cell_size(middle(text, width), width)


def path_in(path: Path, room: int) -> str:
    """``path`` in at most ``room`` cells, if its last part fits, which stays whole."""
    name = f"/{plain(path.name)}"
    return middle(str(path.parent).rstrip("/"), room - cell_len(name)) + name


def strip_arguments(function: str) -> str:
    """``function`` without the arguments of templates and calls: ``a<b>::c(d)`` is ``a::c``."""
    kept, depth = [], 0
    for character in function:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
            if depth < 0:
                return function
        elif depth == 0:
            kept.append(character)
    # The characters of an operator's name are no brackets.
    return "".join(kept).strip().removeprefix("::") if depth == 0 and kept else function


def location_in(frame: Frame, room: int) -> str:
    """``function:line`` in at most ``room`` cells, with as much of the name as fits."""
    text = shortest_location(frame)
    if cell_len(text) <= room or not frame.function:
        return middle(text, room)
    line = f":{frame.line}" if frame.line else ""
    name = strip_arguments(frame.function)
    return (
        middle(name, room - len(line)) + line
        if room > len(line)
        else middle(short_location(frame), room)
    )
