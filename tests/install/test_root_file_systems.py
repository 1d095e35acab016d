"""The files of `make dist` work in a root file system that has python3 and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support import requirements

from install import root_file_system
from install.root_file_system import MACHINES, PYTHON, ROOT

pytestmark = pytest.mark.big

_DIST = ROOT / "dist"
_TRIAL = Path(__file__).with_name("trial.py")
#: An emulated machine takes some ten times as long.
_TIMEOUT_S = 1800
_INSTALL = """set -e
python3 -m venv /opt/locktop
/opt/locktop/bin/pip install --quiet --no-compile --no-index --find-links /root/wheels locktop
exec python3 /root/trial.py /opt/locktop/bin/locktop "$@"
"""


def _wheel(machine: str) -> Path:
    (wheel,) = _DIST.glob(f"locktop-*manylinux_2_17_{machine}*.whl")
    return wheel


def _wheelhouse(architecture: str, directory: Path) -> None:
    """Download the wheel's dependencies, for the Python and the machine of the root file system.

    pip would evaluate the markers for this machine. So the function evaluates them for the target.
    """
    machine = MACHINES[architecture]
    directory.mkdir(parents=True)
    wheel = _wheel(machine)
    shutil.copy(wheel, directory)
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 24, 26, 28, 34)]
    requirements = _requirements(wheel, machine)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--only-binary=:all:", f"--python-version={PYTHON}", *platforms),
            *(f"--dest={directory}", *requirements),
        ],
        check=True,
    )


def _requirements(wheel: Path, machine: str) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    chosen = []
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        environment = {"platform_machine": machine, "extra": ""}
        if requirement.marker is None or requirement.marker.evaluate(environment):
            requirement.marker = None
            chosen.append(str(requirement))
    return chosen


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory whose content is copied into the root file system."""
    files = tmp_path / "files"
    (files / "root").mkdir(parents=True)
    shutil.copy(_TRIAL, files / "root" / _TRIAL.name)
    return files


def _run(architecture: str, files: Path, *command: str) -> str:
    done = root_file_system.run(architecture, files, list(command), timeout_s=_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel(files: Path) -> None:
    _wheelhouse("amd64", files / "root" / "wheels")
    output = _run("amd64", files, "sh", "-c", _INSTALL, "-")
    assert output.endswith("all parts hold\n")


def test_the_wheel_on_aarch64(files: Path) -> None:
    """The emulator gives a program a wrong start time, so the tool does not find its file."""
    requirements.command("aarch64-linux-gnu-gcc")
    _wheelhouse("arm64", files / "root" / "wheels")
    output = _run("arm64", files, "sh", "-c", _INSTALL, "-", "nothing_else", "version", "library")
    assert output.endswith("all parts hold\n")


@pytest.mark.parametrize("parts", [[], ["single_file"]], ids=["all", "unpacking"])
def test_the_single_file(files: Path, parts: list[str]) -> None:
    program = files / "usr" / "local" / "bin" / "locktop"
    program.parent.mkdir(parents=True)
    shutil.copy(_DIST / "locktop.pyz", program)
    trial = ["/root/trial.py", "/usr/local/bin/locktop", *parts]
    assert _run("amd64", files, "python3", *trial).endswith("all parts hold\n")
