"""Files that a stranger planted: the real commands neither hang nor fail because of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support import tool
from support.planted import PLANTED
from support.rights import NOBODY
from support.targets import StartTarget, Target

from locktop.collector.linux.target import find_process
from locktop.collector.sources import discover

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root ignores the file")


@root_only
@pytest.mark.parametrize("kind", ["fifo", "link", "sparse"])
def test_root_does_not_read_suppressions_of_the_current_directory(
    kind: str, start_target: StartTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    monkeypatch.chdir(tmp_path)
    PLANTED[kind][0](tmp_path / ".locktop-suppressions")
    for command in (("check", "--potential"), ("snapshot",)):
        done = tool.run(*command, "-p", target.pid)
        assert done.returncode == (1 if command[0] == "check" else 0), "the order is still told"
        assert done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("locktop: no suppressions: ")
        assert "--suppressions" in line


@pytest.mark.parametrize("kind", ["fifo", "device", "sparse"])
def test_a_named_file_that_is_no_small_regular_file_is_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANTED[kind][0](tmp_path / "named")
    for command in (("check", "--potential"), ("snapshot",)):
        done = tool.run(*command, "-p", os.getpid(), "--suppressions", str(tmp_path / "named"))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("locktop: no suppressions: cannot read")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_rules_and_themes_are_one_line(kind: str, tmp_path: Path) -> None:
    plant, says = PLANTED[kind]
    directory = tmp_path / "locktop"
    (directory / "themes").mkdir(parents=True)
    plant(directory / "themes" / "own.toml")
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    done = tool.run("--theme", "own", environment=environment)
    assert done.returncode == 2
    assert f"{directory}/themes/own.toml: " in done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    plant(directory / "idle.rules")
    done = tool.run("check", "-p", os.getpid(), environment=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"locktop: cannot read {directory}/idle.rules: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def unprepared(start_unprepared: StartTarget) -> Iterator[tuple[Target, list[Path]]]:
    """A process of root without the library, and the paths of a shared file that it could have."""
    target = start_unprepared("mutex_orders", "inversion")
    target.expect("ok")
    paths = [Path(path) for path in discover.paths(find_process(target.pid))]
    local = [path for path in paths if path.parts[:3] == ("/", "dev", "shm")]
    yield target, local
    for path in local:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


@root_only
@pytest.mark.parametrize("kind", ["empty", "fifo", "dangling link", "directory", "sparse"])
def test_a_file_of_another_user_with_the_name_of_a_shared_file_has_no_effect(
    kind: str, unprepared: tuple[Target, list[Path]]
) -> None:
    target, paths = unprepared
    assert paths
    for path in paths:
        PLANTED[kind][0](path) if kind in PLANTED else path.touch()
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    assert tool.snapshot(target.pid)["source"] == "proc"


@root_only
def test_a_damaged_file_of_root_is_one_line(unprepared: tuple[Target, list[Path]]) -> None:
    target, paths = unprepared
    paths[0].touch()
    done = tool.run("snapshot", "-p", target.pid)
    assert done.returncode == 2
    assert done.stderr.startswith("locktop: ")
    assert done.stderr.count("\n") == 1
