"""The example of docs/extensions.md, installed as a package beside locktop."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import tool
from support.documents import ROOT
from support.targets import StartTarget, Target

PAGE = ROOT / "docs/extensions.md"


def files_of_page() -> Iterator[tuple[str, str]]:
    blocks = re.findall(r":\n\n((?:    .*\n|\n)+)", PAGE.read_text())
    for name, block in zip(("pyproject.toml", "locktop_crews.py"), blocks, strict=True):
        yield name, textwrap.dedent(block).strip() + "\n"


def install(folder: Path) -> dict[str, str]:
    """Install the package in a folder; return the environment in which Python finds it."""
    source, installed = folder / "source", folder / "installed"
    source.mkdir()
    for name, text in files_of_page():
        (source / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(installed), str(source)], check=True
    )
    return {"PYTHONPATH": str(installed)}


def waiting_threads(start_target: StartTarget) -> Target:
    target = start_target("holder_activities", "reads_a_pipe")
    target.line()  # what the holder reads
    target.expect("ready")
    return target


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install(tmp_path_factory.mktemp("crews"))


def test_a_process_is_seen_by_stage_section_report_format_and_command(
    installed: dict[str, str], start_target: StartTarget
) -> None:
    target = waiting_threads(start_target)

    def text(*arguments: str | int) -> str:
        done = tool.run_alone(*arguments, environment=installed)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    assert "crews" in text("--help")
    document = json.loads(text("snapshot", "-p", target.pid))
    crews = {crew["name"]: crew["waiting"] for crew in document["crews"]["crews"]}
    waiting = [thread for thread in document["threads"] if thread["waiting_for"] is not None]
    assert sum(crews.values()) == len(waiting) > 0
    rows = text("snapshot", "-p", target.pid, "--format", "crews").splitlines()
    assert rows[0] == "name,waiting"
    assert sorted(rows[1:]) == sorted(f"{name},{number}" for name, number in crews.items())
    assert "WAITING CREWS" in text("snapshot", "-p", target.pid, "--format", "text")
    assert "WAITING CREWS" in text("crews", "-p", target.pid)
    assert '"Crews"' in text("snapshot", "--schema")


def test_a_recording_keeps_the_section_and_a_reader_without_the_extension_leaves_it_out(
    installed: dict[str, str], start_target: StartTarget, tmp_path: Path
) -> None:
    target = waiting_threads(start_target)
    path = tmp_path / "crews.lockrec"
    done = tool.run_alone(
        "record", "-p", target.pid, "-d", "1", "-o", str(path), environment=installed
    )
    assert done.returncode == 0, done.stderr
    done = tool.run_alone("snapshot", str(path), environment=installed)
    assert json.loads(done.stdout)["crews"]["crews"], done.stderr
    done = tool.run_alone("snapshot", str(path))
    assert done.returncode == 0, done.stderr
    assert "crews" not in json.loads(done.stdout)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_module:EXTENSION", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:dumps", "locktop.extensions must name an Extension, not function"),
        ("clash:EXTENSION", "there is another extension 'whatif'"),
        ("field:EXTENSION", "'threads' cannot be the name of an extension"),
    ],
)
def test_an_extension_that_cannot_be_used_is_left_out_with_one_line(
    value: str, said: str, tmp_path: Path
) -> None:
    made = "from locktop.collector.extension import Extension\nEXTENSION = Extension(name={!r})\n"
    (tmp_path / "clash.py").write_text(made.format("whatif"))
    (tmp_path / "field.py").write_text(made.format("threads"))
    metadata = tmp_path / "wrong-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[locktop.extensions]\nwrong = {value}\n")
    done = tool.run_alone("list", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0
    assert done.stderr == f"locktop: extension wrong left out: {said}\n"
