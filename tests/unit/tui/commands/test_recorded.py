"""``snapshot``, ``check`` and ``callers`` with a FILE: recordings, snapshots, wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Snapshot
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.render.documents import snapshot_codec
from locktop.tui import cli

_NS = 1_000_000_000
_BEGIN = 1_790_000_000 * _NS
#: In this second of the recording the process deadlocks.
_DEADLOCKED = 6


def scan(second: int) -> Snapshot:
    """Ten scans of one process: waits that grow, then a deadlock, then the end of the deadlock."""
    make = scenarios.deadlock if second == _DEADLOCKED else scenarios.normal
    made = records.classified(make)()
    first, *others = made.locks
    more = replace(first, contended=first.contended + 10 * second, wait_s=first.wait_s + second)
    stack, *stacks = first.wait_stacks
    grown = replace(stack, count=stack.count + 10 * second, wait_s=stack.wait_s + second)
    return replace(
        made,
        duration_s=100.0 + second,
        locks=(replace(more, wait_stacks=(grown, *stacks)), *others),
    )


@pytest.fixture
def recording(tmp_path: Path) -> str:
    writer = RecordingWriter(tmp_path / "r", RecordingInfo.from_snapshot(scan(0), "1"), _BEGIN)
    for second in range(10):
        writer.add_snapshot(scan(second), _BEGIN + second * _NS)
    writer.finish("test", _BEGIN + 9 * _NS)
    return str(tmp_path / "r")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(list(arguments))
    output = capsys.readouterr()
    return status, output.out, output.err


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    status, output, errors = run(capsys, "snapshot", *arguments)
    assert (status, errors) == (0, "")
    found: dict[str, Any] = json.loads(output)
    return found


def test_snapshot_writes_the_snapshot_at_a_time(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, second in (((), 9), (("--at", "-2s"), 7), (("--at=+3s",), 3)):
        found = written(capsys, recording, *arguments)
        expected = snapshot_codec.document(replace(scan(second), source="recording"))
        assert found == expected


def test_a_span_has_the_figures_between_its_ends(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = written(capsys, recording, "--from", "+2s", "--to", "-2s")
    assert found["duration_s"] == 5.0
    assert found["locks"][0]["interval"]["contended"] == 50
    assert found["locks"][0]["interval"]["wait_s"] == 5.0
    status, text, _ = run(capsys, "snapshot", recording, "--from", "-5s", "--format", "text")
    assert status == 0
    assert "in this time" in text


def test_a_written_snapshot_is_read_by_each_command(
    recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "s.json")
    assert run(capsys, "snapshot", recording, "--at", "+6s", "-o", saved)[0] == 0
    assert run(capsys, "check", saved, "-q")[0] == 1
    assert run(capsys, "snapshot", saved, "--format", "text")[0] == 0
    assert "g_table_lock" in run(capsys, "callers", saved)[1]


def test_a_sampled_process_stays_sampled_in_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = replace(records.sampled(scan(0)), level="sampled")
    writer = RecordingWriter(tmp_path / "r", RecordingInfo.from_snapshot(made, "1"), _BEGIN)
    writer.add_snapshot(made, _BEGIN)
    writer.finish("test", _BEGIN)
    whole = written(capsys, str(tmp_path / "r"))
    assert whole["source"] == "recording"
    assert snapshot_codec.parse(json.dumps(whole).encode(), "x").is_sampled


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), 0),
        (("--at", "+6s"), 1),
        (("--at", "+5s"), 0),
        (("--from", "+1s"), 1),
        (("--from", "+7s"), 0),
        (("--to", "+5s"), 0),
    ],
)
def test_check_answers_for_a_moment_or_for_a_whole_span(
    recording: str, arguments: tuple[str, ...], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "check", recording, "--format", "line", *arguments)
    assert found[0] == status
    assert found[1].startswith("deadlock: " if status else "no deadlock found")


def test_check_of_a_possible_deadlock_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = replace(scan(0), complete=False)
    (tmp_path / "s.json").write_bytes(snapshot_codec.encode(made))
    assert run(capsys, "check", str(tmp_path / "s.json"), "-q")[0] == 3
    assert run(capsys, "check", str(tmp_path / "s.json"), "-q", "--certain-only")[0] == 0


def test_callers_has_the_waits_of_the_span_alone(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, output, _ = run(
        capsys, "callers", recording, "--from", "+2s", "--to", "+5s", "--format", "json",
        "--weight", "count",
    )  # fmt: skip
    nodes = json.loads(output)["nodes"]
    assert sum(node["value"] for node in nodes if node["depth"] == 0) == 30


def test_what_is_damaged_is_left_out_with_one_line(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(recording)
    data = path.read_bytes()
    path.write_bytes(data[:-500])
    status, output, errors = run(capsys, "snapshot", recording)
    assert (status, errors.count("\n")) == (0, 1)
    assert "cut off" in errors
    assert json.loads(output)["duration_s"] < 109


def test_damage_is_reported_although_an_early_snapshot_decides(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(recording)
    path.write_bytes(path.read_bytes()[:-16])
    arguments = ("--from", "+0s", "--format", "line")
    status, _, errors = run(capsys, "check", recording, *arguments)
    assert (status, errors.count("\n")) == (1, 1)
    assert "it was cut off at byte " in errors
    assert errors.endswith(", or still goes on\n")


def test_a_recording_without_a_snapshot_is_one_line(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(recording)
    path.write_bytes(path.read_bytes()[:300])
    status, output, errors = run(capsys, "snapshot", recording)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert "no snapshot" in errors
    assert "cut off" in errors


@pytest.mark.parametrize("command", ["snapshot", "check", "callers"])
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-p", "1", "FILE"),
        ("-p", "1", "--at", "-1s"),
        ("FILE", "--at", "-1s", "--from", "-2s"),
        ("FILE", "--at", "12:00:00"),
        ("FILE", "--from", "-1s", "--to", "-2s"),
        ("FILE", "--at", "soon"),
        ("FILE", "--at"),
        ("no-such-file",),
        ("/dev/null", "--at", "-1s"),
        ("/",),
    ],
)
def test_wrong_use_is_one_line(
    command: str,
    arguments: tuple[str, ...],
    recording: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [recording if one == "FILE" else one for one in arguments]
    try:
        status = cli.main([command, *given])
    except SystemExit as left:  # of argparse
        status = int(left.code or 0)
    found = capsys.readouterr()
    assert (status, found.out, found.err.count("\n")) == (2, "", 1)
    assert "Traceback" not in found.err


def test_a_duration_needs_a_process(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "snapshot", recording, "-d", "1")[0] == 2
