"""Exported files in speedscope's own page: its format, and three others that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from support import chromium, speedscope, tool
from support.chromium import Browser
from support.recordings import end_of, recording
from support.targets import Compiler, Target, remove_file_of, start_time

from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS
from locktop.collector.sources.launch import preload_environment


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests: its start takes most of the time."""
    with chromium.browser() as started:
        yield started


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> tuple[int, Path]:
    """A busy program that has ended: its id and its recording."""
    path = tmp_path_factory.mktemp("viewers") / "rec"
    with Target([compiler.program("busy_crowd"), "8"], preload_environment(None)) as target:
        started = start_time(target.pid)
        target.expect("ready")
        with recording(target.pid, path, "-d", "1") as recorder:
            end_of(recorder)
    remove_file_of(target.pid, started)
    return target.pid, path


@pytest.mark.parametrize("name", ["speedscope", "folded", "chrome", "pprof"])
def test_speedscope_opens_the_file(
    name: str, browser: Browser, recorded: tuple[int, Path], tmp_path: Path
) -> None:
    pid, path = recorded
    file = tmp_path / f"waits{EXPORT_FORMATS[name].suffix}"
    done = tool.run("export", str(path), "--to", name, "-o", str(file))
    assert done.returncode == 0, done.stderr
    if name == "speedscope":
        schema = json.loads((speedscope.release() / "file-format-schema.json").read_text())
        jsonschema.validate(json.loads(file.read_text()), schema)
    text = speedscope.show(browser, file, tmp_path)
    complaints = [line for line in browser.complaints() if "error" in line.lower()]
    title = text.splitlines()[0]
    assert title.startswith("busy_crowd" if name == "speedscope" else file.name)
    expected = {"speedscope": "wait of all threads", "chrome": f"(pid {pid})"}
    assert expected.get(name, file.name) in text
    assert not complaints
