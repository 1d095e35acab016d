"""The operators that mean the same in C and in Python, and what they are changed to."""

from __future__ import annotations

COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
SUMS = {"+": ("-",), "-": ("+",)}
AUGMENTED_SUMS = {"+=": ("-=",), "-=": ("+=",)}
