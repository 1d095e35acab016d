"""Files of the user: each of them is read the same way, and a stranger's file is not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.planted import PLANTED
from support.rights import NOBODY, as_nobody

from locktop.collector.config import idle_rules_file, suppressions, user_file
from locktop.collector.errors import LocktopError
from locktop.tui import themes

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in which each user may put files."""
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded() -> tuple[int, list[str]]:
    """Return how many suppressions there are, and the warnings."""
    warnings: list[str] = []
    return len(suppressions.load(warn=warnings.append)), warnings


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_file_of_suppressions_suppresses_nothing(kind: str, shared: Path) -> None:
    plant, says = PLANTED[kind]
    plant(Path(suppressions.FILE))
    count, (warning,) = as_nobody(loaded)
    assert count == 0
    assert says in warning
    assert warning.startswith(f"no suppressions: cannot read {suppressions.FILE}: ")


@root_only
def test_suppressions_of_the_user_and_of_root_count(shared: Path) -> None:
    file = Path(suppressions.FILE)
    file.write_text("take # because\n")
    assert as_nobody(loaded) == (1, []), "root's file"
    os.chown(file, NOBODY, NOBODY)
    assert as_nobody(loaded) == (1, [])
    os.chown(file, NOBODY - 1, NOBODY)
    count, (warning,) = as_nobody(loaded)
    assert count == 0
    assert f"belongs to uid {NOBODY - 1}" in warning


@root_only
def test_root_reads_the_suppressions_only_if_they_are_named(shared: Path) -> None:
    assert loaded() == (0, [])
    file = Path(suppressions.FILE)
    file.write_text("take # because\n")
    count, (warning,) = loaded()
    assert count == 0
    assert f"--suppressions {file}" in warning
    assert len(suppressions.load(file)) == 1
    os.chown(file, NOBODY, NOBODY)
    assert len(suppressions.load(file)) == 1
    file.rename("target")
    file.symlink_to("target")
    assert len(suppressions.load(file)) == 1


@pytest.mark.parametrize("kind", ["fifo", "dangling link", "device", "directory", "sparse"])
def test_a_named_file_must_be_a_regular_one(kind: str, shared: Path) -> None:
    PLANTED[kind][0](Path("named"))
    with pytest.raises(LocktopError, match=r"^no suppressions: cannot read named: "):
        suppressions.load(Path("named"))


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_rules_are_named_with_the_reason(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    plant, says = PLANTED[kind]
    idle_rules_file.path().parent.mkdir()
    plant(idle_rules_file.path())
    with pytest.raises(LocktopError, match=rf"^cannot read .*/idle\.rules: .*{says}"):
        idle_rules_file.load()


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_theme_is_left_out_with_the_reason(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, _ = themes.load_all()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    plant, says = PLANTED[kind]
    themes.user_directory().mkdir(parents=True)
    plant(themes.user_directory() / "own.toml")
    found, (wrong,) = themes.load_all()
    assert found == known
    assert "own.toml" in wrong
    assert says in wrong


def test_a_file_that_grows_while_it_is_read_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"#" * 100)
    assert len(user_file.read(tmp_path / "file")) == 100
    monkeypatch.setattr(user_file, "MAX_BYTES", 99)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100644, *[0] * 9)))
    with pytest.raises(LocktopError, match="larger than 99 bytes"):
        user_file.read(tmp_path / "file")


def test_without_a_file_the_error_says_so(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "none" / "none"):
        with pytest.raises(user_file.FileMissingError, match="there is no file"):
            user_file.read(path)
