"""The version of an interpreter, and the addresses of its data."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from locktop.collector.symbols.python.version import find_interpreter, version_in_name


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/bin/python3.11", (3, 11)),
        ("/opt/lib/libpython3.9.so.1.0", (3, 9)),
        ("/opt/python3.8/bin/python3", None),
        ("/usr/bin/app", None),
    ],
)
def test_the_file_name_has_the_version(path: str, version: tuple[int, int] | None) -> None:
    assert version_in_name(path) == version


def test_the_addresses_are_those_of_this_process() -> None:
    interpreter = find_interpreter(os.getpid(), ("PyDict_Type", "PyLong_Type"))
    assert interpreter is not None
    assert interpreter.version[:2] == sys.version_info[:2]
    assert interpreter.addresses == {"PyDict_Type": id(dict), "PyLong_Type": id(int)}


def test_no_interpreter_has_all_of_these() -> None:
    assert find_interpreter(os.getpid(), ("PyDict_Type", "PyNothing_Type")) is None


def test_another_program_has_no_interpreter() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        assert find_interpreter(cat.pid, ("PyDict_Type",)) is None
        cat.communicate()
