"""The one error that the command line shows to its user."""

from __future__ import annotations

from locktop.collector.sanitize import clean


class LocktopError(Exception):
    """One clear line for the user: the problem and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message, 1000))


def reason_of(error: OSError) -> str:
    """Return the system's reason in words, as it stands within a message."""
    said = error.strerror or str(error) or "it failed"
    # An abbreviation such as RPC keeps its capitals.
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]
