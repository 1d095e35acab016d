"""``locktop snapshot``: which scans the command takes, and in which order."""

from __future__ import annotations

import json
import time

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.tui import cli
from locktop.tui.commands import snapshot


class ScannedSource:
    """Records its scans. Each takes the duration of the snapshot one second on."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.scans = 0

    def scan(self, resolve: bool = False) -> Snapshot:
        self.done.append("with names" if resolve else "without")
        self.scans += 1
        return replace(scenarios.normal(), duration_s=float(self.scans))

    def want_section(self, name: str, wanted: bool) -> None:
        """Do nothing: there are no calls."""

    def close(self) -> None:
        self.done.append("closed")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> ScannedSource:
    found = ScannedSource()
    monkeypatch.setattr(snapshot, "attached", lambda *_: found)
    monkeypatch.setattr(time, "sleep", lambda seconds: found.done.append(f"{seconds} s"))
    return found


def test_without_a_duration_there_is_one_scan(
    source: ScannedSource, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["snapshot", "-p", "1"]) == 0
    assert source.done == ["with names", "closed"]
    assert json.loads(capsys.readouterr().out)["duration_s"] == 1.0


def test_with_a_duration_the_names_are_known_before_the_interval_begins(
    source: ScannedSource, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of Python locks came only from a first scan with names, so ``-d`` lacked them."""
    assert cli.main(["snapshot", "-p", "1", "-d", "2"]) == 0
    assert source.done == ["with names", "without", "2.0 s", "with names", "closed"]
    assert json.loads(capsys.readouterr().out)["duration_s"] == 1.0


def test_a_frequency_is_for_samples_alone(
    source: ScannedSource, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["snapshot", "-p", "1", "-d", "2", "--hz", "50"]) == 2
    assert capsys.readouterr().err == "locktop: --hz needs --inside and -p PID\n"
    assert source.done == []
