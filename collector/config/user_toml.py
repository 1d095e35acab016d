"""TOML that a user wrote, which may be anything."""

from __future__ import annotations

import tomllib
from typing import Any


class NoTomlError(ValueError):
    """The text is no TOML; the message is one line."""


def loads(text: str) -> dict[str, Any]:
    """Return the table of a text.

    Raises:
        NoTomlError: the text is no TOML, or lists lie too deep in lists.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise NoTomlError("its values are nested too deep") from None
    except ValueError as error:  # of tomllib, or of an integer with too many digits
        raise NoTomlError(str(error).partition("\n")[0]) from None
