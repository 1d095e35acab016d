"""A failed test runs once more. A test that fails twice fails, and so does a run that broke off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPEAT = Path(__file__).parents[2] / "repeat.py"
TESTS = """
import os
from pathlib import Path

def test_first_fails():
    marker = Path(__file__).with_name("ran")
    ran = marker.exists() and os.environ["WITH_ONE"] == "1"
    marker.touch()
    assert ran

def test_passes():
    Path(__file__).with_name("passes").open("a").write("x")

def test_always_fails():
    assert {passes}
"""


def run(directory: Path, passes: bool) -> Path:
    """Run the tests as `make test` does; return the directory that the run leaves."""
    (directory / "test_some.py").write_text(TESTS.format(passes=passes))
    cache = directory / "cache"
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", "test_some.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True)
    assert done.returncode == 1
    (cache / "status").write_text(f"{done.returncode}\n")
    (cache / "environment").write_text("WITH_ONE=1\n")
    return cache


@pytest.mark.parametrize(("passes", "status"), [(True, 0), (False, 1)])
def test_what_failed_runs_once_more(tmp_path: Path, passes: bool, status: int) -> None:
    cache = run(tmp_path, passes)
    done = subprocess.run(
        [sys.executable, str(REPEAT), str(cache)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout
    assert "mend them first:\n  test_some.py::test_first_fails" in done.stdout
    assert (tmp_path / "passes").read_text() == "x", "a test that passed does not run again"


@pytest.mark.parametrize("written", ["2", "0", "1", ""])
def test_a_run_that_broke_off_fails(tmp_path: Path, written: str) -> None:
    (tmp_path / "status").write_text(written)
    done = subprocess.run([sys.executable, str(REPEAT), str(tmp_path)], capture_output=True)
    assert done.returncode == 1
