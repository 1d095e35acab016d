"""The parts of the code, their unit tests, and how these run in a copy of the tree."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mutants.c_changes import c_changes
from mutants.change import Change
from mutants.python_changes import python_changes
from mutants.tree import ROOT, Limits, Tree

#: The unit tests of C that say nothing about waits and holds, and take long.
_SLOW_C_TESTS = {"stack_capture"}
_PACKAGES = Path(sysconfig.get_paths()["purelib"])


class NotCompiledError(Exception):
    """The changed file is no C."""


class Part(Protocol):
    """A part of the code with its unit tests."""

    def changes(self) -> list[Change]:
        """Return all changes of the files of the part."""

    def prepare(self, tree: Tree) -> None:
        """Make a copy ready for tests.

        Raises:
            SystemExit: that is not possible.
        """

    def check(self, tree: Tree) -> None:
        """Check that the tests of a prepared copy pass, and that they run the code of the copy.

        Raises:
            SystemExit: one of both is not so.
        """

    def notices(self, tree: Tree, change: Change) -> bool:
        """Return whether a test fails in the changed copy.

        Raises:
            subprocess.TimeoutExpired: the tests do not end.
            NotCompiledError: there is nothing to test.
        """


class PythonPart:
    """Modules of Python, and the folders of their tests."""

    def __init__(self, modules: Sequence[str], tests: Sequence[str]) -> None:
        self._files = [path for folder in modules for path in _files(folder, "*.py")]
        self._tests = [path for folder in tests for path in _files(folder, "test_*.py")]
        self._limits = Limits()

    def changes(self) -> list[Change]:
        """Return all changes of the modules."""
        return [change for path in self._files for change in python_changes(path, _text_of(path))]

    def prepare(self, tree: Tree) -> None:
        """Lay the copy out like an installed package."""
        package = tree.path / "package" / "locktop"
        shutil.copytree(_PACKAGES / "locktop", package, ignore=shutil.ignore_patterns("*.pyc"))
        for name in ("collector", "tui", "themes"):
            shutil.rmtree(package / name, ignore_errors=True)
            (package / name).symlink_to(tree.path / name)
        # A change may leave the size and the second of a file as they were.
        _compile_all(tree)

    def check(self, tree: Tree) -> None:
        """Run the tests, without a change and with a module that cannot be imported."""
        self._check_modules(tree)
        usual = Usual()
        if not self._passes(tree, self._tests):
            raise SystemExit(f"without a change one of the tests fails: {' '.join(self._tests)}")
        self._limits = usual.limits()
        broken = Change(self._files[-1], 0, 0, "raise SystemExit('broken')\n")
        tree.write(broken)
        if not self.notices(tree, broken):
            raise SystemExit(f"no test imports {broken.path} of the copy")
        tree.restore(broken)

    def notices(self, tree: Tree, change: Change) -> bool:
        """Run the tests of the changed module first, which is fast, then the other ones."""
        path = Path(change.path)
        beginning = str(Path("tests/unit", *path.parts[1:-1], f"test_{path.stem}"))
        own = [test for test in self._tests if test.startswith(beginning)]
        others = [test for test in self._tests if test not in own]
        return not all(self._passes(tree, tests) for tests in (own, others) if tests)

    def _passes(self, tree: Tree, tests: list[str]) -> bool:
        return tree.passes(
            [*_python(), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
            self._limits,
            _environment(tree),
        )

    def _check_modules(self, tree: Tree) -> None:
        names = [
            ".".join(("locktop", *Path(path).with_suffix("").parts)).removesuffix(".__init__")
            for path in self._files
        ]
        code = (
            "import importlib, pathlib, sys\n"
            "for name in sys.argv[2:]:\n"
            "    path = pathlib.Path(importlib.import_module(name).__file__).resolve()\n"
            "    assert path.is_relative_to(sys.argv[1]), path\n"
        )
        command = [*_python(), "-c", code, str(tree.path), *names]
        if not tree.passes(command, Limits(), _environment(tree)):
            raise SystemExit("the tests do not import the modules of the copy")


class CPart:
    """Files of C, and all unit tests of C, each a program."""

    def __init__(self, folder: str) -> None:
        self._files = _files(folder, "*.c")
        self._tests = sorted(
            path.stem
            for path in (ROOT / "native/tests").glob("*.c")
            if path.stem not in _SLOW_C_TESTS
        )
        self._limits = Limits()

    def changes(self) -> list[Change]:
        """Return all changes of the files."""
        return [change for path in self._files for change in c_changes(path, _text_of(path))]

    def prepare(self, tree: Tree) -> None:
        """Build the tests."""
        configure = [_tool("cmake"), "-S", ".", "-B", "build/unit", "-G", "Ninja"]
        ninja = f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}"
        if not tree.passes([*configure, ninja, "-DLOCKTOP_TESTS=ON"], Limits()):
            raise SystemExit("CMake fails in the copy")
        self._build(tree)

    def check(self, tree: Tree) -> None:
        """Run the tests, put the fast ones first, and build a file that is no C."""
        limits: dict[str, Limits] = {}
        for test in self._tests:
            usual = Usual()
            if not tree.passes([_program(tree, test)], Limits()):
                raise SystemExit(f"without a change a test fails: {test}")
            limits[test] = usual.limits()
        self._tests.sort(key=lambda test: limits[test].elapsed_s)
        self._limits = limits[self._tests[-1]]
        broken = Change(self._files[-1], 0, 0, "#error broken\n")
        tree.write(broken)
        try:
            self._build(tree)
        except NotCompiledError:
            tree.restore(broken)
            return
        raise SystemExit(f"no test has {broken.path} of the copy in it")

    def notices(self, tree: Tree, change: Change) -> bool:
        """Build the tests anew and run them, fast ones first."""
        self._build(tree)
        own = Path(change.path).stem
        tests = sorted(self._tests, key=lambda test: test != own)
        return not all(tree.passes([_program(tree, test)], self._limits) for test in tests)

    def _build(self, tree: Tree) -> None:
        targets = [f"unit-{test}" for test in self._tests]
        command = [_tool("cmake"), "--build", "build/unit", "--target"]
        if not tree.passes([*command, *targets], Limits()):
            raise NotCompiledError


#: Packages of the collector whose unit tests lie in the folder of the same name.
_MIRRORED = ("analysis", "recording", "render", "symbols", "extensions/stream")


def parts() -> dict[str, Part]:
    """Return the parts by their names."""
    mirrored = {
        Path(folder).name: PythonPart([f"collector/{folder}"], [f"tests/unit/{folder}"])
        for folder in _MIRRORED
    }
    return {
        **mirrored,
        "reader": PythonPart(
            ["collector/shm", "collector/sources/preload"],
            ["tests/unit/shm", "tests/unit/sources/preload"],
        ),
        "views": PythonPart(["tui/views"], ["tests/unit/tui/views"]),
        "account": CPart("native/src/account"),
    }


def _files(folder: str, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(pattern))


def _text_of(path: str) -> str:
    return (ROOT / path).read_text()


class Usual:
    """The time and the CPU time that a command takes, from here on."""

    def __init__(self) -> None:
        self._start_s, self._start_cpu_s = time.monotonic(), _cpu_s()

    def limits(self) -> Limits:
        """Return more than a change takes that lets the command end."""
        elapsed_s, cpu_s = time.monotonic() - self._start_s, _cpu_s() - self._start_cpu_s
        return Limits(elapsed_s=30 + 10 * elapsed_s, cpu_s=int(10 + 3 * cpu_s))


def _cpu_s() -> float:
    """Return the CPU time of all commands so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _program(tree: Tree, test: str) -> str:
    return str(tree.path / "build/unit/native" / f"unit-{test}")


def _tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def _python() -> list[str]:
    return [sys.executable, "-S"]  # without the editable install, which finds the working tree


def _environment(tree: Tree) -> dict[str, str]:
    return {"PYTHONPATH": f"{tree.path / 'package'}:{_PACKAGES}"}


def _compile_all(tree: Tree) -> None:
    """Compile all modules; Python then compares the content of a file, not its time."""
    command = [*_python(), "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([*command, tree.path / "collector", tree.path / "tui"], check=True)
