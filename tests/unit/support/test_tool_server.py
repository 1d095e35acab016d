"""Runs in forks of the server are as runs in new processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import tool
from support.documents import ROOT
from support.tool import PATIENCE_S


def test_a_run_is_as_in_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "not-a-recording").write_text("text")
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    for arguments in (["--version"], ["no-such-command"], ["check", "not-a-recording"], ["config"]):
        done = tool.run(*arguments, environment=environment)
        alone = tool.run_alone(*arguments, environment=environment)
        assert (done.returncode, done.stdout, done.stderr) == (
            alone.returncode,
            alone.stdout,
            alone.stderr,
        )


def test_runs_may_go_on_at_one_time() -> None:
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda _: tool.run("config", "--path").stdout, range(8)))
    assert len({*outputs}) == 1


@pytest.mark.parametrize("timeout_s", [0.0, 0.01, 1.0])
def test_a_run_that_takes_too_long_ends_with_the_tests_at_last(timeout_s: float) -> None:
    # In a process of its own: the run watches the tests until they end.
    code = (
        "import os, subprocess\n"
        "from support.tool_client import ToolClient\n"
        "try:\n"
        f"    ToolClient().run(['watch', '-p', str(os.getpid())], os.environ, {timeout_s})\n"
        "except subprocess.TimeoutExpired:\n"
        "    print('timeout')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (0, b"timeout\n"), done.stderr
