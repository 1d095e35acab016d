"""The one error that the command line shows to its user."""

from __future__ import annotations

from locktop.collector.sanitize import clean


class LocktopError(Exception):
    """One clear line for the user: the problem and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message, 1000))
