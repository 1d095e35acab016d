"""Long names in little room: the beginning and the end stay, for there names differ."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

from locktop.collector.model import Frame
from locktop.collector.render.words.source_location import short_location, shortest_location
from locktop.tui.views.cells import plain

#: As in ``index_[abi:cxx11]``: the C++ library that the function was built for.
_ABI_TAG = re.compile(r"\[abi:\w+\]")
#: A source location with a line. The function may have blanks, the name of the file has none.
_LOCATION = re.compile(r"(?:(?P<function>.*) )?(?P<file>\S*[^\s:])(?P<line>:\d+)")
#: Fewer cells of a file tell nothing.
_MIN_FILE = 10
#: Fewer cells of a function tell nothing.
_MIN_FUNCTION = 8
#: The end of a lock's name that tells it from others of its class.
_ADDRESS = re.compile(r" (?:at )?0x[0-9a-f]+$")
#: A lock of a type that guards another type: "Rust Mutex<Journal>".
_GUARD = re.compile(r"^(?:\w+ )?(\w+<(.+)>)$")
#: A name made of a source location: the begin, the function, the line.
_NAMED_BY_LOCATION = re.compile(r"^([\w: +'<>,&]+ (?:made )?in )(.*?)(?: \([^()]*(:\d+)\))?$")


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


def end(text: str, room: int) -> str:
    """``text`` in at most ``room`` cells: its end, from the begin of a word if one is near."""
    text = plain(text)
    if cell_len(text) <= room:
        return text
    if room < 2:
        return "…"[: max(0, room)]
    tail = text[-(room - 1) :]
    while cell_len(tail) > room - 1:
        tail = tail[1:]
    before = text[len(text) - len(tail) - 1] + tail
    begins = (index for index in range((len(tail) + 1) // 2) if _begins_word(before[index:]))
    tail = tail[next(begins, 0) :]
    return "…" + tail


def _begins_word(text: str) -> bool:
    """Whether the second character of ``text`` is the first of a word, or of a hump in a word."""
    before, first = text[0], text[1]
    return first.isalnum() and (not before.isalnum() or (before.islower() and first.isupper()))


def lock_name_in(name: str, room: int) -> str:
    """A lock's name in at most ``room`` cells; what tells least goes first.

    The directory of a location, the address, and the arguments of templates go before the begin.
    """
    name = plain(name)
    if cell_len(name) <= room:
        return name
    location = _NAMED_BY_LOCATION.match(name)
    if location is not None:
        begin, function, line = location.groups("")
        shorter = [f"{begin}{function}{line}", f"{begin}{_plain_function(function)}{line}"]
    else:
        head = _ADDRESS.sub("", name)
        shorter = [head, _plain_function(head)] if " " in head else [_plain_function(name)]
        if guard := _GUARD.match(head):
            shorter = [head, guard[1], guard[2]]  # the guarded type tells most
    return next((text for text in shorter if cell_len(text) <= room), end(shorter[-1], room))


def location_end(frame: Frame, room: int) -> str:
    """``function:line`` in some ``room`` cells: the end of the function, and always the line."""
    if not frame.function:
        return shortest_location(frame)
    text = shortest_location(frame) if frame.line else frame.function
    if cell_len(text) <= room:
        return text
    line = f":{frame.line}" if frame.line else ""
    return end(_plain_function(frame.function), max(room - len(line), _MIN_FUNCTION)) + line


def _plain_function(function: str) -> str:
    """A function without the arguments of templates and calls, nor the tag of its library."""
    return _ABI_TAG.sub("", strip_arguments(function))


def fit_middle(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells: cut in its middle or filled with blanks."""
    return set_cell_size(middle(text, width), width)


def fit_location(text: str, width: int) -> str:
    """A source location, ``function file:line``, in exactly ``width`` cells, with its whole line.

    The begin of the path goes first, then the file. Where not even the function has room, its end
    and the begin of the file go.
    """
    text = plain(text)
    rest = text.lstrip()
    indent = text[: len(text) - len(rest)]
    return set_cell_size(indent + _shorter_location(rest, width - len(indent)), width)


def _shorter_location(text: str, width: int) -> str:
    location = _LOCATION.fullmatch(text)
    if cell_len(text) <= width or location is None:
        return middle(text, width)
    file, line = location["file"], location["line"]
    function = _plain_function(location["function"] or "")
    if not function:
        return _shorter_path(file, width - len(line)) + line
    room = width - cell_len(function) - 1 - len(line)
    if room >= min(_MIN_FILE, cell_len(file)):
        return f"{function} {_shorter_path(file, room)}{line}"
    if cell_len(function) + len(line) <= width:
        return function + line
    both = middle(f"{function} {file}{line}", width)
    return both if both.endswith(line) else f"{middle(function, width - len(line))}{line}"[-width:]


def _shorter_path(path: str, room: int) -> str:
    """The end of a path: its last directories and the file, or the end of the name of the file."""
    if cell_len(path) <= room:
        return path
    parts = path.split("/")
    tails = ("…/" + "/".join(parts[number:]) for number in range(1, len(parts)))
    return next((tail for tail in tails if cell_len(tail) <= room), end(parts[-1], room))


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
