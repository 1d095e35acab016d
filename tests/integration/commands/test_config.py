"""``locktop config``, and commands with settings that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import tool

from locktop.tui import keymap


def test_a_new_file_is_written_once(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    first = tool.run("config", "--init", environment=home)
    assert first.returncode == 0
    path = Path(first.stdout.strip())
    written = path.read_text()
    second = tool.run("config", "--init", environment=home)
    assert second.returncode == 2
    assert "exists already" in second.stderr
    assert path.read_text() == written
    assert tool.run("config", "--path", environment=home).stdout.strip() == str(path)
    assert tool.run("config", environment=home).returncode == 0


def test_a_wrong_setting_is_one_line_and_commands_go_on(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "locktop").mkdir()
    (tmp_path / "locktop" / "config.toml").write_text('rate = 99\ntheme = "nowhere"\n')
    printed = tool.run("config", environment=home)
    assert printed.returncode == 2
    listed = tool.run("list", environment=home)
    assert listed.returncode == 0
    for done in (printed, listed):
        rate, theme = done.stderr.splitlines()
        assert "rate: expected `float` <= 10.0" in rate
        assert "there is no theme 'nowhere'" in theme


def test_two_rates_are_one_too_many() -> None:
    done = tool.run("--rate", "2", "--interval", "1", "list")
    assert done.returncode == 2
    assert "--rate and --interval" in done.stderr


#: Content of a file that is no use to anybody, by what is odd about it.
_ODD = {
    "deep lists": b"a = " + b"[" * 100_000,
    "brackets": b"[" * 100_000,
    "deep tables": b"a = " + b"{a=" * 100_000,
    "deep names": b"a" + b".a" * 500 + b" = 1",
    "digits": b"rate = " + b"9" * 10_000,
    "no text": b"\xff\xfe\x80",
    "zeros": bytes(1000),
    "keys": b'"\\n\\u001b[2J" = 1\n',
}


@pytest.mark.parametrize("content", _ODD.values(), ids=_ODD)
def test_odd_settings_are_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "locktop").mkdir()
    (tmp_path / "locktop" / "config.toml").write_bytes(content)
    done = tool.run("config", environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert done.returncode == 2
    _check_line(done.stderr)


@pytest.mark.parametrize("content", _ODD.values(), ids=_ODD)
def test_odd_themes_and_keys_are_one_line(content: bytes, tmp_path: Path) -> None:
    directory = tmp_path / "locktop"
    (directory / "themes").mkdir(parents=True)
    (directory / "themes" / "odd.toml").write_bytes(content)
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    done = tool.run("--theme", "odd", "-p", 1, environment=environment)
    assert done.returncode == 2
    _check_line(done.stderr.splitlines(keepends=True)[0])
    assert "Traceback" not in done.stderr
    (directory / "keys.toml").write_bytes(content)
    _, wrong = keymap.load(str(directory / "keys.toml"))
    (line,) = wrong
    assert line.isprintable()


def _check_line(errors: str) -> None:
    assert errors.startswith("locktop: "), errors
    assert errors.count("\n") == 1
    assert errors.removesuffix("\n").isprintable()
    assert len(errors) < 600
