"""Names what a process runs, by its arguments: the script in place of its interpreter."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple


class _Interpreter(NamedTuple):
    """A program that runs a script, and its options, as patterns of one argument."""

    name: re.Pattern[str]
    #: Options with a value.
    valued: re.Pattern[str]
    #: Options whose value is the program.
    names_program: re.Pattern[str]
    #: Options whose value is code, so there is no script.
    has_code: re.Pattern[str]


_NONE = "(?!)"


def _interpreter(
    name: str, valued: str, names_program: str = _NONE, has_code: str = _NONE
) -> _Interpreter:
    return _Interpreter(*map(re.compile, (name, valued, names_program, has_code)))


_INTERPRETERS = (
    _interpreter(
        r"(python|pypy)[\d.]*[a-z]*",
        r"-[bBdEhiIOPqsSuvVx]*[WX]|--check-hash-based-pycs",
        r"-[bBdEhiIOPqsSuvVx]*m",
        r"-[bBdEhiIOPqsSuvVx]*c",
    ),
    _interpreter(
        r"node|nodejs",
        r"-r|--require|--import|--loader|--experimental-loader|-C|--conditions",
        has_code=r"-e|--eval|-p|--print|-pe",
    ),
    _interpreter(
        r"java",
        r"-cp|-classpath|--class-path|-p|--module-path|--upgrade-module-path|--add-(?!.*=).*",
        r"-jar|-m|--module",
    ),
    _interpreter(r"ruby[\d.]*", r"-[ICEr]", has_code=r"-\w*e"),
    _interpreter(r"perl[\d.]*", r"-I", has_code=r"-\w*[eE]"),
    _interpreter(r"(ba|da|z|k|a)?sh", r"[-+][oO]", has_code=r"-\w*c"),
)
_SUFFIXES = (".py", ".pyc", ".js", ".mjs", ".cjs", ".jar", ".rb", ".pl", ".sh")


def program_words(arguments: Sequence[str]) -> list[str]:
    """Return the base name of what a process runs, and the arguments of that.

    Of an interpreter it is the script, the module, the class or the archive. A program that wrote
    a title over its arguments has that title.
    """
    words = list(arguments)
    if not words or " " in words[0]:
        return words
    words[0] = os.path.basename(words[0].removeprefix("-")) or words[0]
    for interpreter in _INTERPRETERS:
        if interpreter.name.fullmatch(words[0]):
            begin = _program_index(interpreter, words)
            if begin is not None:
                return [os.path.basename(words[begin]) or words[begin], *words[begin + 1 :]]
    return words


def _program_index(interpreter: _Interpreter, words: Sequence[str]) -> int | None:
    """Return the index of the program that the interpreter runs, None if there is none."""
    index = 1
    while index < len(words):
        word = words[index]
        if interpreter.has_code.fullmatch(word):
            return None
        if interpreter.names_program.fullmatch(word) or word == "--":
            index += 1
            break
        if not word.startswith(("-", "+", "@")):
            break
        index += 2 if interpreter.valued.fullmatch(word) else 1
    return index if index < len(words) and words[index] not in ("", "-") else None


def program_names(comm: str, arguments: Sequence[str]) -> frozenset[str]:
    """Return the names by which a user may mean a process."""
    names = {comm}
    if arguments and " " not in arguments[0]:
        script = program_words(arguments)[0]
        names |= {os.path.basename(arguments[0]), script}
        names |= {script.removesuffix(suffix) for suffix in _SUFFIXES}
    return frozenset(names - {""})
