"""The styles of text on a terminal, and the shortest sequence from one style to another."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

#: The code that sets an attribute, and the code that clears it (bold and dim share one).
_OFF = {1: 22, 2: 22, 3: 23, 4: 24, 5: 25, 7: 27, 8: 28, 9: 29}
_EXTENDED_LENGTH = {"5": 3, "2": 5}  # 38;5;N and 38;2;R;G;B
#: The attributes that a blank shows: underlined, reversed, struck out.
_VISIBLE_ON_BLANKS = frozenset({4, 7, 9})


class Attributes(NamedTuple):
    """The style of text: colours as the parameters that set them, "" for the default."""

    foreground: str = ""
    background: str = ""
    flags: frozenset[int] = frozenset()


DEFAULT = Attributes()


@lru_cache(4096)
def apply(before: Attributes, parameters: str) -> Attributes | None:
    """The style after an SGR sequence, None if that is not known."""
    foreground, background, flags = before
    codes = parameters.split(";")
    index = 0
    while index < len(codes):
        code = int(codes[index] or 0)
        length = 1
        if code == 0:
            foreground, background, flags = DEFAULT
        elif code in _OFF:
            flags |= {code}
        elif code in _OFF.values():
            flags = frozenset(flag for flag in flags if _OFF[flag] != code)
        elif code in (38, 48):
            length = _EXTENDED_LENGTH.get(codes[index + 1] if index + 1 < len(codes) else "", 0)
            if not length or index + length > len(codes):
                return None
            colour = ";".join(codes[index : index + length])
            foreground, background = (colour, background) if code == 38 else (foreground, colour)
        elif 30 <= code <= 39 or 90 <= code <= 97:
            foreground = "" if code == 39 else codes[index]
        elif 40 <= code <= 49 or 100 <= code <= 107:
            background = "" if code == 49 else codes[index]
        else:
            return None
        index += length
    return Attributes(foreground, background, flags)


@lru_cache(4096)
def blank(style: Attributes) -> Attributes:
    """The style of all blanks that look like a blank in ``style``."""
    return style if style.flags & _VISIBLE_ON_BLANKS else Attributes(background=style.background)


@lru_cache(4096)
def change(before: Attributes, after: Attributes) -> str:
    """The shortest sequence that changes one style to another."""
    anew = ["0", *_all_of(after)] if after != DEFAULT else [""]
    codes = min(_difference(before, after), anew, key=lambda way: len(";".join(way)))
    return f"\x1b[{';'.join(codes)}m"


def _all_of(attributes: Attributes) -> list[str]:
    flags = [str(flag) for flag in sorted(attributes.flags)]
    return [*flags, *filter(None, (attributes.foreground, attributes.background))]


def _difference(before: Attributes, after: Attributes) -> list[str]:
    gone = {_OFF[flag] for flag in before.flags - after.flags}
    # One code clears bold and dim, so the one that is to stay is set again.
    come = {flag for flag in after.flags if flag not in before.flags or _OFF[flag] in gone}
    codes = [str(code) for code in (*sorted(gone), *sorted(come))]
    if before.foreground != after.foreground:
        codes.append(after.foreground or "39")
    if before.background != after.background:
        codes.append(after.background or "49")
    return codes
