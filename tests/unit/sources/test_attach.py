"""A process that executes another program keeps its pid and start time, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.sources import launch
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment


class Shell:
    """A watched shell that executes a command on request; the command must repeat its input."""

    def __init__(self, command: str) -> None:
        self.process = subprocess.Popen(
            ["sh", "-c", f"echo ready; read go; exec {command}"],
            env=os.environ | preload_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        assert self.stdout.readline() == b"ready\n"

    def execute(self) -> None:
        """Let the shell execute the command, and wait until the command runs."""
        self.stdin.write(b"go\nhello\n")
        self.stdin.flush()
        assert self.stdout.readline() == b"hello\n"


@pytest.fixture
def shell(request: pytest.FixtureRequest) -> Iterator[tuple[Shell, Source]]:
    shell = Shell(request.param)
    source = attach(shell.process.pid)
    yield shell, source
    source.close()
    shell.process.communicate()


@pytest.mark.parametrize("shell", ["cat"], indirect=True)
def test_an_executed_program_is_followed(shell: tuple[Shell, Source]) -> None:
    program, source = shell
    assert source.scan().process.comm == "sh"
    program.execute()
    found = source.scan()
    assert (found.process.comm, os.path.basename(found.process.exe)) == ("cat", "cat")
    assert not found.ended


@pytest.mark.parametrize("shell", ["env -u LD_PRELOAD cat"], indirect=True)
def test_a_new_program_without_the_library_ends_the_source(shell: tuple[Shell, Source]) -> None:
    program, source = shell
    source.scan()
    program.execute()
    found = source.scan()
    assert found.ended
    assert found.process.comm == "sh"
    assert "runs without the library" in found.notes[-1]
    assert source.scan() == found


@pytest.mark.parametrize("shell", ["env -u LD_PRELOAD cat"], indirect=True)
def test_the_file_of_the_former_program_is_ignored(shell: tuple[Shell, Source]) -> None:
    program, _ = shell
    program.execute()
    with pytest.raises(LocktopError, match="runs without the library"):
        attach(program.process.pid, only_exact=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_executed_as_another_user_has_its_own_file(tmp_path: Path) -> None:
    library = tmp_path / "liblocktop.so"
    shutil.copy(launch.library(), library)
    for readable in (library, tmp_path, *tmp_path.parents[:2]):
        readable.chmod(0o755)
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "cat"]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"hello\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"hello\n"
        source = attach(program.pid)
        assert source.scan().process.comm == "cat"
        source.close()
