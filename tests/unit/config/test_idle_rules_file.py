"""The file of idle rules: syntax errors, location and owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.rights import as_nobody
from unit.builders.idle_verdicts import frames, verdict

from locktop.collector.config import idle_rules_file
from locktop.collector.errors import LocktopError
from locktop.collector.model import Kind
from locktop.tui import cli


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sleepy x", "'sleepy' is neither idle nor contended"),
        ("idle", "needs a name"),
        ("idle function=x", "needs a name"),
        ("idle x where=y", "'where=y' is no condition"),
        ("idle x y", "'y' is no condition"),
        ("idle x kind=door", "'door' is no kind; there are mutex, rwlock"),
        ("idle x kind=", "kind= needs a value"),
        ("neither x kind=futex function=f", "a rule that says neither needs type="),
        ("idle x innermost=0", "innermost=0 is not a number of frames"),
        ("idle x innermost=two", "innermost=two is not a number of frames"),
        ("idle x function='a", "No closing quotation"),
    ],
)
def test_a_malformed_rule_is_named_by_file_and_line(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = idle_rules_file.path()
    assert file == tmp_path / "locktop" / "idle.rules"
    file.parent.mkdir()
    file.write_text(f"# mine\n\nidle fine kind=cond -- why not\n{line}\n")
    assert cli.main(["snapshot", "-p", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"locktop: {file}, line 4: ")
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("kind", ["directory", "binary", "large"])
def test_an_unreadable_rules_file_is_a_one_line_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = idle_rules_file.path()
    file.parent.mkdir()
    if kind == "directory":
        file.mkdir()
    else:
        file.write_bytes(b"\xff\xfe" if kind == "binary" else b"#" * (2 << 20))
    with pytest.raises(LocktopError, match=r"idle\.rules"):
        idle_rules_file.load()


def test_the_shipped_rules_apply_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert verdict(idle_rules_file.load(), Kind.COND) == "idle condition"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_rules_file_of_another_user_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    idle_rules_file.path().parent.mkdir(mode=0o700)
    idle_rules_file.path().write_text("contended file kind=cond\n")
    assert verdict(idle_rules_file.load(), Kind.COND) == "contended file"
    # HOME may still name the directory of another user.
    assert as_nobody(lambda: verdict(idle_rules_file.load(), Kind.COND)) == "idle condition"


def test_command_line_rules_precede_the_file_and_the_shipped_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    idle_rules_file.path().parent.mkdir()
    idle_rules_file.path().write_text("contended file function=take function=rest function=go\n")
    rules = idle_rules_file.load(["take", "!go"])
    assert verdict(rules, Kind.MUTEX, *frames("take")) == "idle --idle-matching take"
    assert verdict(rules, Kind.COND, *frames("go")) == "contended --idle-matching !go"
    assert verdict(rules, Kind.COND, *frames("rest")) == "contended file"
    for empty in ("", "!", " "):
        with pytest.raises(LocktopError, match="needs a function"):
            idle_rules_file.load([empty])
