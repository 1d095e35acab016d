"""``locktop config``, and commands with settings that are wrong."""

from __future__ import annotations

from pathlib import Path

from support import tool


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
