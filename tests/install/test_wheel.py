"""The wheel has all parts, and its name promises no more than they keep."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.symbol_versions import compiled_parts, is_newer, needed_versions

from install.root_file_system import ROOT

_COMPILED = {
    *(f"lib/{name}.so" for name in ("liblocktop", "liblocktop-nop", "liblocktop-reader")),
    *(f"bin/{name}" for name in ("locktop-bench", "locktop-branch-demo", "locktop-demo")),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as `make dist` gives it to auditwheel, with the parts that `make setup` compiled."""
    directory = tmp_path_factory.mktemp("wheel")
    tools = Path(sys.executable).parent
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-build-isolation", "--no-deps", f"--wheel-dir={directory}", str(ROOT)),
            f"--config-settings=build-dir={ROOT / 'build' / 'editable'}",
        ],
        env={"PATH": f"{tools}:/usr/bin:/bin"},
        check=True,
    )
    (wheel,) = directory.glob("*.whl")
    return wheel


def test_one_wheel_serves_every_python(wheel: Path) -> None:
    assert wheel.name.split("-")[2:4] == ["py3", "none"]


def test_the_wheel_has_all_files_of_the_packages(wheel: Path) -> None:
    expected = {
        str(path.relative_to(ROOT))
        for package in ("collector", "tui", "themes")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name.removeprefix("locktop/")
            for name in archive.namelist()
            if name.startswith("locktop/") and not name.endswith("/")
        }
    assert found == expected | _COMPILED | {"__init__.py", "_abi.py", "include/locktop.h"}


def test_the_compiled_parts_need_an_old_glibc_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    parts = list(compiled_parts(tmp_path / "locktop"))
    assert len(parts) == len(_COMPILED)
    for part in parts:
        assert not {symbol for symbol, version in needed_versions(part) if is_newer(version)}
