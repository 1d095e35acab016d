"""``--format``: the choices, the default and the help of each command that has it."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

import pytest

from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.tui import cli
from locktop.tui.commands.output import announced

#: The choices, the default and the help, by command. None: the command asks whether it was given.
FORMAT = {
    "check": (
        "text line json dot mermaid",
        None,
        "text (the default), line: the first line only, json, or a graph of the cycles for"
        " Graphviz (dot) or Mermaid",
    ),
    "callers": (
        "text json csv",
        None,
        "text (the default), json, or csv: a caller/callee summary report",
    ),
    "calls": ("text json", None, "text (the default) or json"),
    "snapshot": ("json msgpack text html", "json", "default json"),
    "gate": (
        "text json junit markdown",
        "text",
        "text (the default), json, junit: XML for a CI, or markdown: for a pull request",
    ),
    "stacks": ("text json", "text", "default text"),
    "why": ("text json dot", "text", "default text"),
    "whatif": ("text json", "text", "default text"),
    "diff": ("text json", "text", "default text"),
    "doctor": ("text json", "text", None),
    "env": ("export", "export", "lines for sh"),
    "profile list": ("text json", "text", "default text"),
    "profile show": ("text json", "text", "default text"),
}


class _Parser(argparse.ArgumentParser):
    """Keeps the option ``--format`` of each command, by the words of the command."""

    found: ClassVar[dict[str, argparse.Action]] = {}

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        action = super().add_argument(*names, **options)
        if "--format" in names:
            self.found[self.prog] = action
        return action


@pytest.fixture(scope="module")
def options() -> dict[str, argparse.Action]:
    """The options ``--format`` by command."""
    for command in cli.all_commands():
        command.add_arguments(_Parser(prog=command.NAME))
    return _Parser.found


def test_each_command_with_formats_is_tested(options: dict[str, argparse.Action]) -> None:
    assert set(options) == set(FORMAT)


@pytest.mark.parametrize("command", FORMAT)
def test_formats(command: str, options: dict[str, argparse.Action]) -> None:
    names, default, text = FORMAT[command]
    assert " ".join(options[command].choices or ()) == names
    assert (options[command].default, options[command].help) == (default, text)


def test_a_headline_stands_before_prose_alone(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = argparse.Namespace(announced="alert: x")
    assert announced(b"page\n", SNAPSHOT_FORMATS["text"], arguments) == b"alert: x\n\npage\n"
    assert capsys.readouterr().err == ""
    assert announced(b"{}", SNAPSHOT_FORMATS["json"], arguments) == b"{}"
    assert capsys.readouterr().err == "alert: x\n"
