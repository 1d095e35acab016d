"""Where the parts of Python objects lie, by version of CPython. Offsets are in bytes."""

from __future__ import annotations

from msgspec import Struct

#: Flags of a type (Include/object.h).
INLINE_VALUES, MANAGED_DICT, HEAP_TYPE = 1 << 2, 1 << 4, 1 << 9

OLDEST, NEWEST = (3, 8), (3, 14)
HEADER, FREE_THREADED_HEADER = 16, 32  # of an object
#: The tag of an int from 3.12 on. From 3.14 on a cached int has the second flag, too
#: (Include/internal/pycore_long.h).
_ONE_DIGIT, _IMMORTAL = 1 << 3, 1 << 2


class ObjectLayout(Struct, frozen=True):
    """The layout of objects in one version of CPython."""

    version: tuple[int, int]
    header: int  # size of an object without content; its type is the last word
    old_keys: bool  # the tables of keys are those before 3.11
    text_at: int  # of the text of an ASCII string
    wide_text_at: int  # of the text of other strings
    state_shift: int  # of the kind, in the word with the state of a string
    one_digit: frozenset[int]  # the words that say that a positive int has one digit
    values_at: int  # of the first value, from where a dictionary's values begin
    cached_keys_at: int  # of a class's table of names, behind the head of the type
    managed_dict_at: int  # of an instance's dictionary, from the instance on


def layout_of(version: tuple[int, int], is_free_threaded: bool) -> ObjectLayout | None:
    """Return the layout of a version; None if the version is not known."""
    if not OLDEST <= version <= NEWEST:
        return None
    header = FREE_THREADED_HEADER if is_free_threaded else HEADER
    has_wide_chars = version < (3, 12)  # a cached wchar_t string, and its length
    text_at = header + (32 if has_wide_chars else 24)
    return ObjectLayout(
        version=version,
        header=header,
        old_keys=version < (3, 11),
        text_at=text_at,
        wide_text_at=text_at + (24 if has_wide_chars else 16),
        state_shift=8 if is_free_threaded and version >= (3, 14) else 2,
        one_digit=frozenset({1} if version < (3, 12) else {_ONE_DIGIT, _ONE_DIGIT | _IMMORTAL}),
        values_at=8 if version >= (3, 13) else 0,
        cached_keys_at=848 if version == (3, 11) else 856 if version >= (3, 12) else 0,
        managed_dict_at=-8 if is_free_threaded else -24,
    )
