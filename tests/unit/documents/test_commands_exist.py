"""Every command, option and make target that a document names exists."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents import ROOT, code_lines, documents, inline_code

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
        cli.main([*arguments, "--help"])
    return output.getvalue()


@functools.cache
def _commands() -> frozenset[str]:
    return frozenset(re.findall(r"^    ([a-z]+) ", _help(), re.MULTILINE))


def _code(text: str) -> Iterator[tuple[int, str]]:
    yield from inline_code(text)
    yield from ((line.number, line.text) for line in code_lines(text))


def unknown_commands(text: str) -> list[str]:
    """Return the commands of locktop with a name or an option that its help does not have."""
    unknown = []
    for number, code in _code(text):
        for rest in _LOCKTOP.findall(code):
            words = rest.partition(" -- ")[0].split()
            command = words[:1] if words and _COMMAND.fullmatch(words[0]) else []
            if command and command[0] not in _commands():
                unknown.append(f"{number}: {command[0]}")
                continue
            known = frozenset(_OPTION.findall(_help(*command)))
            given = _OPTION.findall(" ".join(words[len(command) :]))
            unknown += [f"{number}: {option}" for option in given if option not in known]
    return unknown


def unknown_targets(text: str) -> list[str]:
    """Return the targets that the Makefile does not have."""
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    named = ((number, found) for number, code in _code(text) for found in _MAKE.findall(code))
    return [f"{number}: {target}" for number, target in named if target not in targets]


@pytest.mark.parametrize("path", documents(), ids=str)
def test_commands_exist(path: Path) -> None:
    assert unknown_commands((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", documents(), ids=str)
def test_make_targets_exist(path: Path) -> None:
    assert unknown_targets((ROOT / path).read_text()) == []


def test_unknown_commands_are_found() -> None:
    text = (
        "See `locktop snapshot --quiet` and `locktop look -p 1`.\n\n    X=1 locktop --level all\n"
    )
    assert unknown_commands(text) == ["1: --quiet", "1: look", "3: --level"]


def test_known_commands_pass() -> None:
    text = "`locktop snapshot -p PID [-d SECONDS]`, `locktop -p 1`, `locktop run -- ls --color`\n\n"
    text += '    (eval "$(locktop env --level all)"; exec ./server --port 1)\n'
    text += "    locktop check -p PID | dot -Tsvg\n"
    assert unknown_commands(text) == []


def test_targets_are_checked() -> None:
    assert unknown_targets("`make test`, `make coffee`, make tea") == ["1: coffee"]
