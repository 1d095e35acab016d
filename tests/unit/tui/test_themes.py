"""The parts of the screen that need no screen: pace, themes, saving, started programs, keys."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from unit.builders import scenarios as pictures

from locktop.collector.errors import LocktopError
from locktop.collector.export import files
from locktop.collector.sources.launched_program import EndedEarlyError, LaunchedProgram
from locktop.tui import themes
from locktop.tui.actions import ACTIONS
from locktop.tui.app import LocktopApp
from locktop.tui.bindings import bindings, footer_line
from locktop.tui.commands.run import report_end
from locktop.tui.frame_pacer import DRAWN_TO_RAISE, SKIPS_TO_LOWER, Pacer
from locktop.tui.keymap import CALL_TREE_ACTIONS, CALL_TREE_KEYMAP, FOOTER, KEYMAP
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.help import WIDTH, help_text

ALL = themes.load_all()[0]
COLOURED = [theme for theme in ALL.values() if not theme.ansi]


def test_pace_is_lowered_by_a_slow_terminal_and_comes_back() -> None:
    pacer = Pacer(2.0)
    for _ in range(SKIPS_TO_LOWER):
        assert not pacer.may_draw(drained=False)
    assert pacer.pace.actual == 1.0
    assert pacer.pace.target == 2.0
    assert "slow terminal" in pacer.pace.text
    for _ in range(DRAWN_TO_RAISE):
        assert pacer.may_draw(drained=True)
    assert pacer.pace.actual == 2.0
    assert pacer.pace.text == "2/s"


def test_pace_stops_at_its_ends() -> None:
    pacer = Pacer(2.0)
    pacer.step(100)
    assert pacer.interval_s == pytest.approx(0.1)
    pacer.step(-100)
    assert pacer.interval_s == pytest.approx(10.0)
    for _ in range(20):
        pacer.may_draw(drained=False)
    assert pacer.interval_s == pytest.approx(10.0)


def luminance(colour: str) -> float:
    def part(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = Color.parse(colour).rgb
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", COLOURED, ids=lambda theme: theme.name)
def test_text_of_every_theme_can_be_read(theme: themes.ThemeFile) -> None:
    """WCAG 2.2: 4.5 for text. The rules between panels are no text."""
    least = 7.0 if theme.name == "contrast" else 4.5
    backgrounds = {"alarm": "alarm-back", "flag": "flag-back", "cursor": "cursor-back"}
    for name in themes.STYLED:
        if name in ("rule", "cursor-elsewhere"):
            continue
        behind = theme.screen.get(backgrounds.get(name, ""), theme.base["background"])
        assert contrast(theme.screen[name], behind) >= least, name
        if name not in backgrounds:
            elsewhere = theme.screen["cursor-elsewhere-back"]
            assert contrast(theme.screen[name], elsewhere) >= 4.0, name


def test_there_are_themes_for_dark_light_contrast_sixteen_and_no_colours() -> None:
    assert set(ALL) == {"night", "paper", "contrast", "ansi16", "mono"}
    assert [theme.name for theme in ALL.values() if not theme.dark] == ["paper"]
    assert all(
        value.startswith("ansi_")
        for theme in (ALL["ansi16"], ALL["mono"])
        for value in (*theme.screen.values(), *theme.base.values())
    )


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TERM": "xterm-256color"}, "night"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "night"),
        ({"TERM": "linux"}, "ansi16"),
        ({"TERM": "screen"}, "ansi16"),
        ({}, "ansi16"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "mono"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "night"),
    ],
)
def test_the_theme_suits_the_terminal(environ: dict[str, str], name: str) -> None:
    assert themes.default_name(environ) == name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("[base]", "[base"), "not TOML"),
        (('text = "#c8d0da"', 'text = "bluish"'), "screen.text: 'bluish' is no colour"),
        (('text = "#c8d0da"', ""), "screen.text is missing"),
        (('name = "night"', 'name = "a b"'), "name must be"),
        (("dark = true", 'dark = "yes"'), "dark must be true or false"),
        (('title = "bold"', 'title = "bald"'), "style.title: 'bald' is no style"),
        (("[style]", "[style]\nnose = 'bold'"), "style.nose is not known"),
        (('name = "night"', 'name = "night"\nnose = 1'), "nose is not known"),
    ],
)
async def test_a_broken_theme_file_is_told_and_left_out(
    change: tuple[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = next(p for p in themes._shipped() if p.name == "night.toml").read_text()
    own = tmp_path / "locktop" / "themes"
    own.mkdir(parents=True)
    (own / "own.toml").write_text(night.replace(*change))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found, wrong = themes.load_all()
    assert set(found) == set(ALL)
    assert len(wrong) == 1
    assert "own.toml" in wrong[0]
    assert complaint in wrong[0]
    app = LocktopApp(pictures.HandFeed(pictures.normal()), "own", environ={"TERM": "linux"})
    async with app.run_test(size=(80, 24)):
        assert app.theme == "ansi16"


def test_the_users_own_theme_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = next(p for p in themes._shipped() if p.name == "night.toml").read_text()
    own = tmp_path / "locktop" / "themes"
    own.mkdir(parents=True)
    (own / "mine.toml").write_text(night.replace('"night"', '"mine"'))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "mine" in themes.load_all()[0]


def test_write_file_is_whole_private_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write_file(path, b"one")
    with pytest.raises(files.NotWrittenError, match=r"a exists; --force"):
        files.write_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600
    files.write_file(path, b"three", replace=True)
    assert path.read_bytes() == b"three"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("replace", [False, True])
def test_write_file_replaces_nothing_but_a_file(tmp_path: Path, replace: bool) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"kept")
    link.symlink_to(target)
    with pytest.raises(files.NotWrittenError, match=f"link is a symbolic link to {target}"):
        files.write_file(link, b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match="is a directory"):
        files.write_file(tmp_path, b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match=r"nodir/x\.json: no such directory"):
        files.write_file(tmp_path / "nodir" / "x.json", b"new", replace=replace)
    files.write_file(Path("/dev/null"), b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match=r"^/dev/full: no space left on device; make"):
        files.write_file(Path("/dev/full"), b"new", replace=replace)
    assert Path("/dev/null").is_char_device()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_file(pipe, b"new", replace=replace)
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert target.read_bytes() == b"kept"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_name_for_a_file_holds_nothing_of_a_strangers_path() -> None:
    from msgspec.structs import replace

    snapshot = pictures.normal()
    hostile = replace(snapshot.process, comm="../../etc/x y\x1b")
    name = files.snapshot_name(replace(snapshot, process=hostile), ".json")
    assert name == "locktop-_.._etc_x_y_-4711-20261121T031245Z.json"


def test_every_action_has_keys_and_no_key_has_two() -> None:
    assert {keys.action for keys in (*KEYMAP, *CALL_TREE_KEYMAP)} == set(ACTIONS)
    assert len(bindings()) == len(KEYMAP)
    in_callers = [keys for keys in (*KEYMAP, *CALL_TREE_KEYMAP) if keys.action in CALL_TREE_ACTIONS]
    assert len(bindings(*CALL_TREE_ACTIONS)) == len(in_callers) == len(CALL_TREE_ACTIONS)
    for keymap in (KEYMAP, in_callers):
        pressed = [key for keys in keymap for key in keys.keys]
        assert len(pressed) == len(set(pressed))


def test_the_line_of_keys_shows_whole_keys_only() -> None:
    whole = line_text(footer_line(500))
    assert all(ACTIONS[name].label in whole for name in FOOTER)
    for width in range(10, 140):
        text = line_text(footer_line(width))
        assert len(text) <= width
        assert whole.startswith(text)
    assert "w save" in line_text(footer_line(80))


def test_no_line_of_the_help_is_broken_on_a_small_terminal() -> None:
    assert max(len(line) for line in help_text(()).plain.splitlines()) <= WIDTH


def started(*arguments: str, **options: object) -> LaunchedProgram:
    command = [sys.executable, "-c", *arguments]
    return LaunchedProgram(sys.executable, command, **options)  # type: ignore[arg-type]


def test_a_program_that_ended_at_once_is_told_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    with started("import sys; print('no config'); sys.exit(7)", output=str(log)) as program:
        program._process.wait(60)
        with pytest.raises(EndedEarlyError, match=r"status 7 before .*: no config") as ended:
            program.source()
    assert report_end(program, ended.value) == 7
    assert capsys.readouterr().err.endswith(f"\nlocktop: its output is in {log}\n")
    assert log.read_text() == "no config\n"


def test_a_running_program_is_ended_and_that_is_status_0(tmp_path: Path) -> None:
    with started("import signal; signal.pause()", output=str(tmp_path / "log")) as program:
        pid = program.pid
    assert program.status == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_told_to_end_while_it_starts_a_program_leaves_none_behind(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            pids.append(self.pid)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.getsignal(number)
    program = started("import signal; signal.pause()", output=str(tmp_path / "log"))
    with pytest.raises(SystemExit) as left, program:
        pytest.fail("it went on")
    assert left.value.code == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert signal.getsignal(number) == before


def test_a_program_ended_by_a_signal_gives_128_and_its_number(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with started(code, output=str(tmp_path / "log")) as program:
        program._process.wait(60)
    assert program.status == 137
    assert "SIGKILL" in program.told()[0]


def test_output_never_goes_over_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("precious")
    with pytest.raises(LocktopError, match="exists"), started("pass", output=str(log)):
        pass
    assert log.read_text() == "precious"
