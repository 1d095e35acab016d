"""C++ and Rust names as their authors wrote them."""

from __future__ import annotations

import re
from functools import lru_cache

_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_ESCAPES = {
    "$SP$": "@", "$BP$": "*", "$RF$": "&", "$LT$": "<", "$GT$": ">", "$LP$": "(", "$RP$": ")",
    "$C$": ",", "$u20$": " ", "$u27$": "'", "$u5b$": "[", "$u5d$": "]", "$u7b$": "{",
    "$u7d$": "}", "$u7e$": "~", "$u2b$": "+", "$u22$": '"',
}  # fmt: skip
_RUST_ESCAPE = re.compile(r"\$[A-Za-z0-9]{1,3}\$")
_MOST = 16_384  # characters of a mangled name worth the work


@lru_cache(maxsize=16_384)
def demangle(symbol: str) -> str:
    """Return the readable name, without parameters; ``symbol`` itself when it is not mangled."""
    if not symbol.startswith(("_Z", "_R", "__Z")) or len(symbol) > _MOST:
        return symbol
    import pycxxfilt

    try:
        if symbol.startswith("_R"):
            readable = pycxxfilt.rust_demangle(symbol)
        else:
            readable = pycxxfilt.itanium_demangle(symbol)
    except ValueError:
        return symbol
    if not readable:
        return symbol
    if _RUST_HASH.search(readable):
        return _legacy_rust(readable)
    return without_parameters(readable)


def _legacy_rust(name: str) -> str:
    """Rust before its own mangling wrote C++ names with escapes and a hash at the end."""
    name = _RUST_HASH.sub("", name)
    name = _RUST_ESCAPE.sub(lambda match: _RUST_ESCAPES.get(match[0], match[0]), name)
    return name.replace("..", "::").replace("::_<", "::<")


def without_parameters(name: str) -> str:
    """Cut the parameter list off a C++ function's name: ``put``, not ``put(int, char)``."""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        character = name[at]
        if character == ")":
            depth += 1
        elif character == "(":
            depth -= 1
            if depth == 0:
                return _before_parameters(name, at)
    return name


def _before_parameters(name: str, at: int) -> str:
    tail = name[at:]
    if tail.startswith(("(anonymous namespace)", "(.")):
        # "(.part.0)" marks a piece of a function that the compiler split
        return without_parameters(name[:at].rstrip()) if tail.startswith("(.") else name
    if name[:at].endswith("operator"):  # operator(): these parentheses are its name
        return name
    return name[:at]
