"""The sentences at the top of a report say what `locktop check` says of the same snapshot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import tool
from support.eventually import until
from support.pythons import PYTHON
from support.report_page import data_of
from support.targets import Compiler, Target, source_of

from locktop.collector.sources.launch import preload_environment

#: Seconds of waits after which a present wait is the cause.
_LONG_S = 1.5


@contextmanager
def running(compiler: Compiler, name: str, *arguments: str, sampled: bool) -> Iterator[int]:
    source = source_of(name)
    is_python = source.suffix == ".py"
    program = [PYTHON, source] if is_python else [compiler.program(name)]
    environment = {} if sampled else preload_environment(None)
    with Target([*program, *arguments], environment) as target:
        target.line()
        if name == "ring_of_three":
            target.go_on()
            target.line()
        yield target.pid


def _texts(
    pid: int, directory: Path, *, waits: bool, status: int | None = None
) -> tuple[int, str, list[str]]:
    """Return the status and the text of check, without line ends, and the three sentences.

    Args:
        pid: the process.
        directory: for files.
        waits: a thread must have waited long.
        status: that of check, which may need a further scan; None: any.
    """
    saved, page = directory / "snapshot.json", directory / "report.html"

    def is_reached() -> bool:
        assert tool.run("snapshot", "-p", pid, "-o", str(saved), "--force").returncode == 0
        threads = json.loads(saved.read_text())["threads"]
        present = [wait["since_s"] for thread in threads if (wait := thread["waiting_for"])]
        is_long = not waits or max(present, default=0.0) > _LONG_S
        return is_long and status in (None, tool.run("check", str(saved)).returncode)

    until(is_reached, "long waits")
    checked = tool.run("check", str(saved))
    done = tool.run("report", str(saved), "-o", str(page))
    assert done.returncode == 0, done.stderr
    text = re.sub(r"\s+", " ", checked.stdout)
    return checked.returncode, text, data_of(page.read_text())["sentences"]


@pytest.mark.parametrize(
    ("name", "sampled", "status", "arguments"),
    [
        ("ring_of_three", False, 1, ()),
        ("ring_of_three", True, 1, ()),
        ("python_holders", True, 3, ("deadlock_of_three",)),
    ],
)
def test_a_deadlock(
    name: str, sampled: bool, status: int, arguments: tuple[str, ...], compiler: Compiler,
    tmp_path: Path,
) -> None:  # fmt: skip
    with running(compiler, name, *arguments, sampled=sampled) as pid:
        _, text, (verdict, cause, advice) = _texts(pid, tmp_path, waits=True, status=status)
    assert text.startswith(verdict.removesuffix("."))
    assert advice in text
    held = "held by" if status == 1 else "probably held by"
    members = cause.split("; ")
    assert len(members) == 3
    for member in members:
        wait, holder = re.fullmatch(
            rf"(.+ waits for .+) {held} (.+?) for [^,]*, in .+", member.rstrip(".")
        ).groups()  # type: ignore[union-attr]
        assert wait in text
        assert f"{held} {holder}" in text


@pytest.mark.parametrize(
    ("name", "sampled", "holder"),
    [
        (
            "orders_service",
            True,
            "probably held by Thread-1 (charge_order), which has been",
        ),
        ("hot_index_lock", False, "indexer holds it for "),
        ("hot_index_lock", True, "indexer holds it for "),
    ],
)
def test_a_holder_that_sleeps(
    name: str, sampled: bool, holder: str, compiler: Compiler, tmp_path: Path
) -> None:
    with running(compiler, name, sampled=sampled) as pid:
        _, text, (verdict, cause, advice) = _texts(pid, tmp_path, waits=True)
    assert text.startswith(verdict.removesuffix("."))
    assert cause.removesuffix(".") in text
    assert holder in cause
    # A single scan may not know how long the holder has slept.
    lasts = re.search(r"has been in .+ for (?:at least )?([\d.]+) s", cause)
    if lasts is not None and float(lasts[1]) >= 1.0:
        assert advice.startswith("Make the call that sleeps before the lock is taken")


@pytest.mark.parametrize("sampled", [True, False])
def test_an_idle_process(sampled: bool, compiler: Compiler, tmp_path: Path) -> None:
    with running(compiler, "nothing_to_show", sampled=sampled) as pid:
        code, text, (verdict, cause, advice) = _texts(pid, tmp_path, waits=False)
    assert (code, text.strip()) == (0, verdict.removesuffix("."))
    assert cause.startswith("No thread waits for a lock at this moment, and no")
    assert advice == "Nothing needs to change."
