"""The Python interpreters of this machine, and what their locks are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_SYSTEMS = "/usr/bin/python3"
#: Runs the Python programs of the tests: the interpreter of the tests, or another one.
PYTHON = os.environ.get("LOCKTOP_TEST_PYTHON", sys.executable)
#: The same, and the system's interpreter: stripped, without a shared libpython.
PYTHONS = [python for python in dict.fromkeys((PYTHON, _SYSTEMS)) if Path(python).exists()]
#: Where other interpreters lie: Debian's, pyenv's, conda's.
_DIRECTORIES = (
    (Path("/usr/bin"), "python3.[0-9]*[0-9t]"),
    (Path.home() / ".pyenv/versions", "3.*/bin/python3"),
    (Path("/opt"), "*conda*/bin/python3"),
    (Path("/opt"), "*/bin/python3.[0-9]*t"),
)
#: Of interpreters without the GIL, which may be on the PATH alone.
_FREE_THREADED = ("python3.13t", "python3.14t")
#: Major and minor version, bytes of a Lock behind its header, and whether there is no GIL.
_TELL = """
import sys, sysconfig, _thread
size = _thread.LockType.__basicsize__ - object.__basicsize__
print(*sys.version_info[:2], size, int(sysconfig.get_config_var("Py_GIL_DISABLED") or 0))
"""
#: A lock of one byte, a PyMutex, in place of a pointer to a semaphore and more (_threadmodule.c).
_MUTEX_SIZE = 8


def all_pythons() -> list[str]:
    """Return the paths of all interpreters of CPython 3.8 and later that lie where they should."""
    interpreters = {
        str(path.resolve()) for directory, glob in _DIRECTORIES for path in directory.glob(glob)
    }
    on_path = filter(None, map(shutil.which, _FREE_THREADED))
    interpreters |= {str(Path(path).resolve()) for path in on_path}
    return sorted(python for python in {*interpreters, sys.executable} if version(python) >= (3, 8))


@cache
def _facts(python: str) -> tuple[int, ...]:
    done = subprocess.run([python, "-c", _TELL], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0, 0, 0)


def version(python: str) -> tuple[int, ...]:
    """Return major and minor version of an interpreter, (0, 0) if it does not run."""
    return _facts(python)[:2]


def has_mutexes(python: str) -> bool:
    """Return whether ``threading.Lock`` is a PyMutex, which has no owner and no semaphore."""
    return _facts(python)[2] == _MUTEX_SIZE


def is_free_threaded(python: str) -> bool:
    """Return whether an interpreter has no GIL."""
    return _facts(python)[3] == 1


def pythons_with_gil() -> list[str]:
    """Return those of all_pythons() that have a GIL."""
    return [python for python in all_pythons() if not is_free_threaded(python)]


def need_semaphores(python: str) -> None:
    """Skip a test of holders: nobody knows the holder of a PyMutex (docs/runtimes.md)."""
    if has_mutexes(python):
        pytest.skip(f"the locks of {python} are no semaphores")


def need_mutexes(python: str) -> None:
    """Skip a test of the waits for PyMutex."""
    if not has_mutexes(python):
        pytest.skip(f"the locks of {python} are no PyMutex")
