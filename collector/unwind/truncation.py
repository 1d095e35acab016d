"""Why a stack cannot be followed further."""

from __future__ import annotations


class Cut(Exception):
    """The reason, in words for the user."""


class UnknownRegister(Cut):
    """What is asked for depends on a register whose value is not known."""

    def __init__(self, register: int) -> None:
        super().__init__(f"a frame counts from a register that is not known ({register})")
        self.register = register
