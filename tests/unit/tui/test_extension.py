"""An extension of an installed package brings options, lines and views."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit.builders import scenarios

from locktop.collector.extension.discovery import LoadedExtensions
from locktop.collector.model import Lock
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui import cli, extension
from locktop.tui.extension import ScreenExtension, SnapshotOption, ViewLabel, screen_extensions
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.styled_line import Line, line_text, make_line

Install = Callable[[ScreenExtension], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Have an extension beside those of locktop."""

    def forget() -> None:
        extension.screen_extensions.cache_clear()
        extension.command_modes.cache_clear()

    def add(made: ScreenExtension) -> None:
        monkeypatch.setattr(extension, "installed", lambda: LoadedExtensions((made,), ()))
        forget()

    yield add
    monkeypatch.undo()
    forget()


class Mode:
    """``locktop callers --twice N`` has twice this exit status."""

    OPTION = "--twice"
    DESCRIPTION = "With --twice N the command does nothing."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(self.OPTION, type=int, metavar="N", help="a number")

    def execute(self, arguments: argparse.Namespace) -> int | None:
        return None if arguments.twice is None else 2 * arguments.twice


def test_a_mode_has_an_option_of_a_command_and_does_its_work(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(ScreenExtension("twice", command_modes=lambda: {"callers": Mode()}))
    file = tmp_path / "no_such_file"
    assert cli.main(["callers", str(file), "--twice", "21"]) == 42
    assert capsys.readouterr().err == ""
    assert cli.main(["callers", str(file), "--format", "text"]) == 2
    assert "no_such_file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["callers", "--help"])
    page = capsys.readouterr().out
    assert f"\n\n{Mode.DESCRIPTION}\n\n" in page
    given = "unless --format, --function, --inside, --twice or -o is given"
    assert given in " ".join(page.split())


def test_a_mode_that_cannot_be_loaded_is_an_error_of_the_command_line(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> dict[str, Mode]:
        raise ImportError("no module of that package")

    install(ScreenExtension("twice", command_modes=broken))
    assert cli.main(["check", "-p", "1"]) == 2  # 1 would be a deadlock
    assert "no module of that package" in capsys.readouterr().err


def test_an_option_that_needs_another_is_refused_without_it(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    def add_depth(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--depth", type=int)

    install(ScreenExtension("soil", snapshot_option=SnapshotOption("", None, {"depth": add_depth})))
    for options in (["-p", "1"], ["file", "--soil"]):
        assert cli.main(["snapshot", *options, "--depth", "3"]) == 2
        assert capsys.readouterr().err == "locktop: --depth needs --soil and -p PID\n"


def test_the_details_of_a_lock_have_the_lines_of_extensions(install: Install) -> None:
    def lines(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
        yield make_line(f"lock {lock.id} of {len(index.locks)}")

    index = SnapshotIndex(scenarios.normal())
    lock = index.snapshot.locks[0]
    before = [line_text(line) for line in lock_details(index, lock)]
    install(ScreenExtension("counts", lock_details=lines))
    after = [line_text(line) for line in lock_details(index, lock)]
    added = f"lock {lock.id} of {len(index.locks)}"
    assert [line for line in after if line != added] == before
    assert added in after


def test_the_extensions_whose_views_have_a_digit_come_first(install: Install) -> None:
    install(ScreenExtension("last", view_label=ViewLabel("x", "Last", "L")))
    labelled = [made.view_label is not None for made in screen_extensions()]
    assert [made.name for made in screen_extensions()[:2]] == ["inside", "last"]
    assert labelled == sorted(labelled, reverse=True)
