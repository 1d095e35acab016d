"""The example of docs/extensions.md, installed as a package beside locktop."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import tool
from support.documents import ROOT
from support.targets import StartTarget, Target

PAGE = ROOT / "docs/extensions.md"


def code_of_page() -> list[str]:
    blocks = re.findall(r":\n\n((?:    .*\n|\n)+)", PAGE.read_text())
    return [textwrap.dedent(block).strip() + "\n" for block in blocks]


def install(folder: Path) -> dict[str, str]:
    """Install the package in a folder; return the environment in which Python finds it."""
    source, installed = folder / "source", folder / "installed"
    source.mkdir()
    _, description, module = code_of_page()
    (source / "pyproject.toml").write_text(description)
    (source / "locktop_crews.py").write_text(module)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(installed), str(source)], check=True
    )
    return {"PYTHONPATH": str(installed)}


def name_entry_point(folder: Path, name: str, value: str) -> None:
    """Make a folder look as if a package with an entry point were installed there."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[locktop.extensions]\n{name} = {value}\n")


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
    finding = text("check", "-p", target.pid, "--format", "crews").splitlines()
    assert finding == ["deadlocks,0", *rows]
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


def test_the_short_example_brings_a_format(start_target: StartTarget, tmp_path: Path) -> None:
    target = waiting_threads(start_target)
    (tmp_path / "waiters.py").write_text(code_of_page()[0])
    name_entry_point(tmp_path, "waiters", "waiters:EXTENSION")
    done = tool.run_alone(
        "snapshot", "-p", target.pid, "--format", "waiters",
        environment={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()


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
    made = (
        "from locktop.collector.extension.parts import Extension\n"
        "EXTENSION = Extension(name={!r})\n"
    )
    (tmp_path / "clash.py").write_text(made.format("whatif"))
    (tmp_path / "field.py").write_text(made.format("threads"))
    name_entry_point(tmp_path, "wrong", value)
    done = tool.run_alone("list", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0
    assert done.stderr == f"locktop: extension wrong left out: {said}\n"
