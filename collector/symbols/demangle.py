"""C++ and Rust names in the form of the source code."""

from __future__ import annotations

import re
from functools import lru_cache

from locktop.collector.symbols.demangle_worker import readable

_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_ESCAPES = {
    "SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}  # fmt: skip
_RUST_ESCAPE = re.compile(r"\$(?:([A-Z]{1,2})|u([0-9a-f]{1,6}))\$")
_LENGTH = re.compile(r"[1-9][0-9]{0,4}")  # of the part that follows
_GENERIC = re.compile(r"(_ZN[^<]*17h[0-9a-f]{16}E)(<.+>)$")
_MAX_SYMBOL = 16_384  # characters of a mangled name that is demangled

# Suffixes of compilers for a part of a function, or for a copy of it.
_SUFFIXES = frozenset(
    ("cold", "part", "constprop", "isra", "lto_priv", "localalias", "llvm", "__uniq", "warm", "hot")
)
_UNKNOWN_SUFFIX = re.compile(r" \(\.[^()]*\)$")  # the demangler's form of other suffixes
_QUALIFIERS = (" const", " volatile", " noexcept", " &", " &&")
_OPERATOR = re.compile(r"(?<!\w)operator(?!\w)")
_PURPOSE = re.compile(r"^[-\w #]+? (?:for|to) ")  # "vtable for ", "virtual thunk to "
_REQUIRES = re.compile(r"(?<=\)) (?:const )?requires ")
_STRING = re.compile(
    r"std::(?:__cxx11|__1)::basic_string<char, std::(?:__1::)?char_traits<char>, "
    r"std::(?:__1::)?allocator<char> ?>"
)


@lru_cache(maxsize=16_384)
def demangle(symbol: str) -> str:
    """Return the readable name of a symbol.

    Return type, parameters and compilers' suffixes are left out. A symbol that is not mangled
    loses its suffixes alone. A symbol of Rust's older mangling may have what its type ``T`` is in
    brackets behind it.
    """
    if len(symbol) > _MAX_SYMBOL:
        return symbol
    generic = _GENERIC.match(symbol)
    if generic is not None:
        return demangle(generic[1]).replace("<T>", generic[2], 1)
    symbol = _strip_suffix(symbol)
    if not symbol.startswith(("_Z", "_R", "__Z")):
        return symbol
    whole = readable(symbol)
    if not whole:
        return _conversion(symbol) or symbol
    if symbol.startswith("_R"):
        return whole
    if _RUST_HASH.search(whole):
        return _legacy_rust(whole)
    return strip_parameters(_STRING.sub("std::string", whole))


def _strip_suffix(symbol: str) -> str:
    """Return ``put`` for ``put.part.0.cold``. A number alone distinguishes static variables."""
    end = stop = len(symbol)
    while (dot := symbol.rfind(".", 0, stop)) > 0:
        mark = symbol[dot + 1 : stop]
        if mark in _SUFFIXES:
            end = dot
        elif not mark.isdigit():
            break
        stop = dot
    return symbol[:end]


def _conversion(symbol: str) -> str:
    """Return ``Name::operator …``: LLVM cannot read some conversions to template types."""
    parts, position = [], len("_ZNK" if symbol.startswith("_ZNK") else "_ZN")
    while length := _LENGTH.match(symbol, position):
        position = length.end() + int(length[0])
        parts.append(symbol[length.end() : position])
    return "::".join([*parts, "operator …"]) if parts and symbol.startswith("cv", position) else ""


def _legacy_rust(name: str) -> str:
    """Convert a name of Rust's older mangling: a C++ name with escapes and a hash at the end."""
    name = _RUST_HASH.sub("", name)
    # Each part begins with a letter or, before an escape, with an underscore.
    name = re.sub(r"(^|::)_(?=\$)", r"\1", name)
    return _RUST_ESCAPE.sub(_unescape, name).replace("..", "::")


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        return _RUST_ESCAPES.get(escape[1], escape[0])
    number = int(escape[2], 16)
    return chr(number) if number < 0x110000 else escape[0]


def strip_parameters(name: str) -> str:
    """Return a C++ function's name without return type and parameters.

    The result is ``put<int>`` for ``bool put<int>(int, char) const``. Names of other things stay.
    """
    before = _PURPOSE.match(name)
    start = before.end() if before else 0
    return name[:start] + _function(name[start:])


def _function(name: str) -> str:
    name = _UNKNOWN_SUFFIX.sub("", name)
    requires = _REQUIRES.search(name)
    if requires is not None:
        name = name[: requires.start()]
    while name.endswith(_QUALIFIERS):
        name = name[: name.rindex(" ")]
    start = _last_group(name)
    if not start or name[:start].endswith(("operator", "'")):
        return name  # data; a closure, whose parentheses are in its name
    if name[start - 1] == ")" and not name[:start].endswith("operator()"):
        inner = _last_group(name[:start])
        if inner and name[inner + 1] in "*&":  # void (*signal(int))(int)
            name = name[inner + 2 : start - 1]
            start = _last_group(name) or len(name)
    return _strip_return_type(name[:start])


def _last_group(name: str) -> int | None:
    """Return the index of the parenthesis that the end of a name closes; None for none."""
    if not name.endswith(")") or name.endswith("(anonymous namespace)"):
        return None
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += (name[index] == ")") - (name[index] == "(")
        if depth == 0:
            return index
    return None


def _strip_return_type(name: str) -> str:
    """Cut off the return type that the name of a template function begins with."""
    start, open_ones = 0, [""]
    for index, character in enumerate(name):
        if len(open_ones) == 1 and _OPERATOR.match(name, index):
            break  # an operator contains brackets and blanks of its own
        if character in "<(":
            open_ones.append(character)
        elif character == ")" or (character == ">" and open_ones[-1] == "<"):
            open_ones.pop()
        elif character == " " and len(open_ones) == 1 and name[index - 1] != ")":
            start = index + 1
        if not open_ones:
            return name
    return name[start:] if len(open_ones) == 1 else name
