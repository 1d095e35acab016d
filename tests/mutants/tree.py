"""A copy of the repository: the working tree never changes."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from mutants.change import Change

ROOT = Path(__file__).resolve().parents[2]
_COPIED = (
    "CMakeLists.txt",
    "collector",
    "docs",
    "native",
    "pyproject.toml",
    "tests",
    "themes",
    "tui",
)
_NOTHING: Mapping[str, str] = MappingProxyType({})
#: For a change that asks for memory without end.
_MAX_DATA_BYTES = 4 << 30


class Limits(msgspec.Struct, frozen=True):
    """The most that a command may take, in seconds. On a busy machine the CPU time tells more."""

    elapsed_s: float = 300.0
    cpu_s: int = 300


class Tree:
    """The copy in which changes are made and tests run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, path / name, ignore=shutil.ignore_patterns("*.pyc"))
            else:
                shutil.copy2(ROOT / name, path / name)
        # The hooks' tests leave no file where other programs look for processes.
        (path / "shared").mkdir()

    def write(self, change: Change) -> None:
        """Make a change."""
        target = self.path / change.path
        target.write_text(change.applied(target.read_text()))

    def restore(self, change: Change) -> None:
        """Bring the changed file back."""
        shutil.copyfile(ROOT / change.path, self.path / change.path)

    def passes(
        self, command: Sequence[str], limits: Limits, environment: Mapping[str, str] = _NOTHING
    ) -> bool:
        """Run a command, with no output, and all of its children.

        Raises:
            subprocess.TimeoutExpired: a limit was exceeded; the processes have ended.
        """
        process = subprocess.Popen(
            command,
            cwd=self.path,
            env=os.environ | {"LOCKTOP_DIR": str(self.path / "shared"), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MAX_DATA_BYTES,) * 2)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (limits.cpu_s,) * 2)
            status = process.wait(limits.elapsed_s)
            if status in (-signal.SIGXCPU, -signal.SIGKILL):
                raise subprocess.TimeoutExpired(command, limits.cpu_s)
            return status == 0
        finally:
            _kill_group(process.pid)
            process.wait()


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of them have ended
