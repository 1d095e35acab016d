"""Every command, option and make target that a document names exists."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Iterator

from support.documents import ROOT, code_lines, inline_code

from lint.finding import Fault
from locktop.tui import cli

#: Commands stand at the begin of code, behind a variable, or inside `$(...)` and quotes.
_LOCKTOP = re.compile(r"""(?:^|[\s("'])locktop((?:\s+[^\s|;&)"'#]+)*)""")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_COMMAND = re.compile(r"[a-z]+")
_MAKE = re.compile(r"(?:^|\s)make ([a-z][a-z-]*)")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


@functools.cache
def _help(*arguments: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        cli.main([*arguments, "--help-all"])
    return output.getvalue()


@functools.cache
def _commands() -> frozenset[str]:
    return frozenset(re.findall(r"^  ([a-z]+) ", _help(), re.MULTILINE))


def _code(text: str) -> Iterator[tuple[int, str]]:
    yield from inline_code(text)
    yield from ((line.number, line.text) for line in code_lines(text))


def unknown_commands(text: str) -> Iterator[Fault]:
    """Yield the commands of locktop with a name or an option that its help does not have."""
    for number, code in _code(text):
        for rest in _LOCKTOP.findall(code):
            words = rest.partition(" -- ")[0].split()
            command = words[:1] if words and _COMMAND.fullmatch(words[0]) else []
            if command and command[0] not in _commands():
                yield Fault(number, f"no such command: {command[0]}")
                continue
            known = frozenset(_OPTION.findall(_help(*command)))
            for option in _OPTION.findall(" ".join(words[len(command) :])):
                if option not in known:
                    yield Fault(number, f"no such option: {option}")


def unknown_targets(text: str) -> Iterator[Fault]:
    """Yield the targets that the Makefile does not have."""
    for number, code in _code(text):
        for target in _MAKE.findall(code):
            if target not in _targets():
                yield Fault(number, f"no such target of make: {target}")


@functools.cache
def _targets() -> frozenset[str]:
    return frozenset(_TARGET.findall((ROOT / "Makefile").read_text()))
