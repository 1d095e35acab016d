"""`locktop diff` on recordings of a program whose holds are three times as long in one of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import second_reader, tool
from support.recordings import end_of, recording
from support.report_page import data_of
from support.targets import StartTarget, Target
from unit.builders.compared import scan

from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.render.formats import SNAPSHOT_FORMATS

#: Four threads want one lock all the time, so each hold lets three of them wait.
SHORT, LONG = "4:s200,L40,s2000,U,M1", "4:s200,L40,s6000,U,M1"
LOCK = "lock_rounds.c: mutexes[40]"


class Recorded(NamedTuple):
    path: Path
    rounds_per_s: float  # by the program's own count


def rounds_and_seconds(target: Target) -> tuple[int, float]:
    target.go_on()
    truth = target.truth()
    return sum(truth["rounds"]), truth["seconds"]


@pytest.fixture
def record(start_target: StartTarget, tmp_path: Path) -> Callable[[str], Recorded]:
    """Return a function that records a program with these threads."""

    def record_one(threads: str) -> Recorded:
        target = start_target("lock_rounds", threads, flags=("-lm",))
        target.expect("ready")
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.rec"
        rounds, seconds = rounds_and_seconds(target)
        with recording(target.pid, path, "-d", "3", "--every", "100ms") as recorder:
            end_of(recorder)
        later, end_s = rounds_and_seconds(target)
        return Recorded(path, (later - rounds) / (end_s - seconds))

    return record_one


def diff(*arguments: str | Path) -> dict[str, Any]:
    done = tool.run("diff", *map(str, arguments), "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def change(document: dict[str, Any], measure: str, per: str = "second") -> dict[str, Any]:
    [lock] = [lock for lock in document["locks"] if lock["name"] == LOCK]
    [result] = [one for one in lock["changes"] if (one["measure"], one["per"]) == (measure, per)]
    return dict(result)


def test_longer_holds_have_the_ratio_that_the_program_counts(
    record: Callable[[str], Recorded],
) -> None:
    short, long = record(SHORT), record(LONG)
    document = diff(short.path, long.path)
    assert document["changed"]
    truth = long.rounds_per_s / short.rounds_per_s
    taken = change(document, "acquisitions")
    assert truth / 1.5 < taken["ratio"] < truth * 1.5
    hold = change(document, "mean_hold_s", "use")
    # The lock is held all the time, so a third of the rounds are holds of three times the length.
    assert 1 / truth / 1.5 < hold["ratio"] < 1 / truth * 1.5
    if hold["interval"] is not None:
        assert hold["interval"][0] <= hold["ratio"] <= hold["interval"][1]
        assert min(hold["pieces"].values()) >= 8
    assert document["transaction"] == "mark #"
    per_transaction = change(document, "acquisitions", "transaction")
    assert per_transaction["a"] == pytest.approx(1.0, abs=0.1)
    assert per_transaction["b"] == pytest.approx(1.0, abs=0.1)

    page = tool.run("diff", str(short.path), str(long.path)).stdout
    assert LOCK in page.splitlines()[0]
    assert max(map(len, page.splitlines())) <= 80


def test_one_file_twice_and_two_spans_of_it(record: Callable[[str], Recorded]) -> None:
    path = record(SHORT).path
    assert tool.run("diff", str(path), str(path)).stdout.startswith("Nothing changed.\n")
    times = [time_ns for time_ns, _ in second_reader.read(path).snapshots]
    middle = f"+{(times[len(times) // 2] - times[0]) / 1e9:.9f}s"
    document = diff(f"{path}@..{middle}", f"{path}@{middle}..")
    seconds = [document[side]["duration_s"] for side in "ab"]
    whole = diff(path, path)["a"]["duration_s"]
    assert sum(seconds) == pytest.approx(whole)
    assert min(seconds) > 0


def test_a_snapshot_and_a_report_have_the_text(
    record: Callable[[str], Recorded], tmp_path: Path
) -> None:
    before, after = str(record(SHORT).path), str(record(LONG).path)
    lines = tool.run("diff", before, after).stdout.splitlines()
    snapshot = json.loads(tool.run("snapshot", after, "--diff", before).stdout)
    assert snapshot["diff"] == {"before": before, "lines": lines}
    page = tmp_path / "report.html"
    done = tool.run("report", after, "--diff", before, "-o", str(page))
    assert done.returncode == 0, done.stderr
    [part] = [part for part in data_of(page.read_text())["parts"] if "DIFFERENCES" in part]
    assert "  ALL LOCKS" in part
    for wrong in (["-p", "1"], [str(tmp_path / "nothing")]):
        done = tool.run("snapshot", *wrong, "--diff", before)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_snapshots_and_a_recording_of_one_process(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("lock_rounds", SHORT, flags=("-lm",))
    target.expect("ready")
    rounds_and_seconds(target)
    for form in ("json", "msgpack"):
        path = tmp_path / f"snapshot.{form}"
        done = tool.run("snapshot", "-p", target.pid, "--format", form, "-o", str(path))
        assert done.returncode == 0, done.stderr
    document = diff(tmp_path / "snapshot.json", tmp_path / "snapshot.msgpack")
    assert change(document, "acquisitions")["interval"] is None
    assert document["a"]["pid"] == target.pid


def test_the_result_is_a_new_file(record: Callable[[str], Recorded], tmp_path: Path) -> None:
    path, output = record(SHORT).path, tmp_path / "diff.txt"
    arguments = ("diff", str(path), str(path), "-o", str(output))
    assert tool.run(*arguments).returncode == 0
    assert output.read_text().startswith("Nothing changed.")
    assert "exists; --force writes over it" in tool.run(*arguments).stderr
    assert tool.run(*arguments, "--force").returncode == 0


@pytest.mark.parametrize(
    ("a", "said"),
    [
        ("no-such-file", "no-such-file: no such file"),
        ("no-such-file@-5s..", "no-such-file: no such file"),
        ("RECORDING@12:03", "no such file, and no span; the form is FILE@FROM..TO"),
        ("RECORDING@never..", "'never' is no time"),
        ("RECORDING@2001-01-01T00:00:00Z..", "is outside of the recording"),
        ("RECORDING@-1s..+0s", "the span ends before it begins"),
        ("RECORDING@+0s..+0s", "this span has one snapshot alone"),
        ("SNAPSHOT@..-1s", "is a snapshot; only a recording has spans"),
        ("/dev/null", "/dev/null"),
    ],
)
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, a: str, said: str) -> None:
    file, snapshot, second_ns = tmp_path / "file", tmp_path / "snapshot", 10**9
    writer = RecordingWriter(file, RecordingInfo.from_snapshot(scan(0), "1"), second_ns)
    for second in range(3):
        writer.add_snapshot(scan(second), (second + 1) * second_ns)
    writer.finish("test", 3 * second_ns)
    snapshot.write_bytes(SNAPSHOT_FORMATS.render("json", scan(0)))
    text = a.replace("RECORDING", str(file)).replace("SNAPSHOT", str(snapshot))
    done = tool.run("diff", text, str(file))
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert said in line
