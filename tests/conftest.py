"""Fixtures for tests that run real programs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import requirements
from support.comparison import CompareWithUnprepared, comparison_with
from support.eventually import until
from support.targets import ROOT, Compiler, StartTarget, Target, remove_file_of, start_time

from locktop.collector.sources.launch import preload_environment


@pytest.fixture(scope="session", autouse=True)
def signals_that_end() -> None:
    """Restore signals that a shell in the background ignores; the tests' programs inherit them."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def nothing_kept_from_run_to_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Use no cache and none of the user's choices, so that no run depends on another one."""
    os.environ["LOCKTOP_CACHE"] = "none"
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        os.environ[name] = str(tmp_path_factory.mktemp(name.lower()))


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """Compiles the programs of tests/targets, each once."""
    return Compiler(tmp_path_factory.mktemp("targets"), ROOT / "build" / "targets")


@pytest.fixture
def start_unprepared(compiler: Compiler) -> Iterator[StartTarget]:
    """Starts a target without the library: ``start_unprepared(name, *arguments)``."""
    with ExitStack() as stack:

        def start(name: str, *arguments: str, flags: tuple[str, ...] = ()) -> Target:
            return stack.enter_context(Target([compiler.program(name, *flags), *arguments]))

        yield start


@pytest.fixture
def start_target(compiler: Compiler) -> Iterator[StartTarget]:
    """Starts a target with the library: ``start_target(name, *arguments, level=None)``.

    ``environment`` adds variables, and ``flags`` adds compiler flags. The target is always gone
    after the test.
    """
    with ExitStack() as stack:

        def start(
            name: str,
            *arguments: str,
            level: str | None = None,
            environment: dict[str, str] | None = None,
            flags: tuple[str, ...] = (),
        ) -> Target:
            variables = preload_environment(level) | (environment or {})
            target = Target([compiler.program(name, *flags), *arguments], variables)
            stack.callback(remove_file_of, target.pid, start_time(target.pid))
            return stack.enter_context(target)

        yield start


@pytest.fixture
def compare_with_unprepared(
    start_unprepared: StartTarget, start_target: StartTarget
) -> CompareWithUnprepared:
    """Checks that a self-checking target has the same result with the library as without."""
    return comparison_with(start_unprepared, start_target)


@pytest.fixture
def need() -> Callable[..., Path]:
    """Returns the path of an installed program: ``need(command, package=command)``.

    A test is skipped if its program is missing; in CI it fails.
    """
    return requirements.command


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes an empty file system of a number of bytes; another call changes the size."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    directory = tmp_path / "tmpfs"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(directory)], check=True)

    def resized(size: int) -> Path:
        for left in directory.iterdir():
            left.unlink()
        command = ["mount", "-o", f"remount,size={size}", str(directory)]
        # The kernel gives the pages of a process that has ended back somewhat later.
        until(lambda: subprocess.run(command, check=False).returncode == 0, "the new size")
        return directory

    try:
        yield resized
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what would bring the tools of skipped tests, here and for the end of `make test`."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)]
    packages = requirements.packages(reasons)
    if packages:
        terminalreporter.write_line(f"for skipped tests: apt-get install {' '.join(packages)}")
    if noted := os.environ.get("LOCKTOP_MISSING_PACKAGES"):
        Path(noted).write_text("".join(f"{name}\n" for name in packages))
