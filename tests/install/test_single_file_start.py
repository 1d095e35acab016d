"""The start of locktop.pyz says in one line why it cannot start."""

from __future__ import annotations

import ast
import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

import pytest

from install.root_file_system import ROOT

_THIS = tuple(sys.version_info[:2])


@pytest.fixture(scope="module")
def module() -> ModuleType:
    path = ROOT / "release" / "single_file_start.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refusal(capsys: pytest.CaptureFixture[str], refused: pytest.ExceptionInfo[SystemExit]) -> str:
    assert refused.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("locktop: ")
    assert line.count("\n") == 1
    return line


def test_another_python(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        module.start((3, 99), platform.machine())
    line = _refusal(capsys, refused)
    assert "for Python 3.99" in line
    assert "Run: python3.99 " in line


def test_another_machine(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        module.start(_THIS, "vax")
    assert f"for vax, and this machine is {platform.machine()}" in _refusal(capsys, refused)


def test_a_directory_that_anybody_may_change(
    module: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module.check_directory(str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(SystemExit) as refused:
        module.check_directory(str(tmp_path))
    assert f"chmod o-w {tmp_path}" in _refusal(capsys, refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory away")
def test_a_directory_of_another_user(
    module: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(SystemExit) as refused:
        module.check_directory(str(tmp_path))
    assert "belongs to another user" in _refusal(capsys, refused)


def test_an_old_python_can_read_it() -> None:
    source = (ROOT / "release" / "single_file_start.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
