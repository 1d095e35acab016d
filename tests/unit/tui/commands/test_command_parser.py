"""The help of each command fits, and an error names what was meant."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from locktop.tui import cli
from locktop.tui.commands.command_parser import (
    COMMAND_GROUPS,
    MAX_OPTIONS,
    MAX_WIDTH,
    group_of,
)

_OPTION = re.compile(r"^  (?:-\w[^,]*, )?(--?[\w-]+)", re.MULTILINE)


def options(text: str) -> set[str]:
    """Return the options that a help explains, but those for help."""
    return set(_OPTION.findall(text)) - {"--help", "--help-all"}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_help_is_wider_than_the_terminal_or_80_columns(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", f"{columns}")
    for parser in cli.parser().all_parsers():
        for text in (parser.format_help(), parser.format_help(has_all=True)):
            widest = max(text.splitlines(), key=len)
            assert len(widest) <= MAX_WIDTH, f"{parser.prog}: {widest}"


def test_a_help_has_the_options_that_matter_and_says_where_the_others_are() -> None:
    for parser in cli.parser().all_parsers():
        few, every = parser.format_help(), parser.format_help(has_all=True)
        assert len(options(few)) <= MAX_OPTIONS, parser.prog
        left_out = options(every) - options(few)
        assert (f"`{parser.prog} --help-all`" in few) == bool(left_out), parser.prog
        words = few.replace(",", " ").split()
        assert all(option in words for option in left_out), parser.prog
        assert "--help-all" not in every


def test_the_common_options_stand_in_one_group() -> None:
    text = cli.parser().format_help(has_all=True)
    _, _, common = text.partition("\ncommon options:\n")
    assert "--theme" in common
    assert "--stop-threads" in common
    assert "--version" not in common


def test_the_commands_stand_in_groups_each_in_one_line() -> None:
    lines = cli.parser().format_help().splitlines()
    numbers = [lines.index(f"{title}:") for title in COMMAND_GROUPS.values()]
    assert numbers == sorted(numbers)
    for command in cli.all_commands():
        assert f"  {command.NAME:<10} {command.HELP}" in lines


def test_a_command_of_another_group_stands_in_the_first() -> None:
    class Odd:
        NAME = HELP = DESCRIPTION = "odd"
        GROUP = "elsewhere"

    assert group_of(Odd()) == "look"  # type: ignore[arg-type]


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what wrong use prints."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["chekc"], "check"),
        (["check", "-p", "1", "--format", "jsno"], "json"),
        (["demo", "--theme", "nigth"], "night"),
        (["ctl", "-p", "1", "--level", "Countng"], "counting"),
    ],
)
def test_a_mistyped_word_gets_the_nearest_one(
    capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str
) -> None:
    said = complaint(capsys, *arguments)
    assert f"; did you mean {meant}?" in said
    assert said.count("\n") == 1


def test_the_name_of_one_process_is_as_good_as_its_id(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "lonely_service.py"
    script.write_text("print(flush=True)\ninput()\n")
    command = [sys.executable, str(script), "--port"]
    with (
        subprocess.Popen([*command, "80"], stdin=-1, stdout=-1) as alone,
        subprocess.Popen([*command, "81"], stdin=-1, stdout=-1) as other,
    ):
        for process in (alone, other):
            assert process.stdout is not None
            process.stdout.readline()
        many = complaint(capsys, "check", "-p", "lonely_service.py").splitlines()
        assert many[0].endswith("2 processes have the name 'lonely_service.py'; give the id of one")
        assert sorted(line.strip() for line in many[1:]) == sorted(
            [f"{alone.pid} lonely_service.py --port 80", f"{other.pid} lonely_service.py --port 81"]
        )
        other.kill()
        other.wait()
        for name in ("lonely_service.py", "lonely_service"):
            assert cli.parser().parse_args(["check", "-p", name]).pid == alone.pid
        assert "did you mean lonely_service.py?" in complaint(capsys, "-p", "lonly_service.py")
        alone.kill()
