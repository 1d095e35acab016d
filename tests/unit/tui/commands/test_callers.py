"""``locktop callers`` for its users: text, JSON and CSV from files, and one-line errors."""

from __future__ import annotations

import gc
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import msgpack
import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.documents.snapshot_codec import document
from locktop.tui import cli

REPORT = """\
Type,Function Name,Inclusive Samples,Exclusive Samples,Module Name,Root Function Name,
"Root","main",100,40,"p.exe","main",
"Callee","work",60,60,"p.exe","main",
"Root","work",60,60,"p.exe","work",
"Caller","main",60,60,"p.exe","work",
"Caller","other",
"""


class Done(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def callers(*arguments: str | Path) -> Done:
    """Run the command in this process; test_cli.py runs commands in processes of their own."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    threshold = gc.get_threshold()
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            status = cli.main(["callers", *map(str, arguments)])
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        gc.set_threshold(*threshold)
    for stream in (output, errors):
        stream.seek(0)
    return Done(status, output.read(), errors.read())


def said(*arguments: str | Path) -> str:
    done = callers(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complaint(*arguments: str | Path) -> str:
    done = callers(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("locktop: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot as `locktop snapshot` and the screen save a snapshot."""
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document(scenarios.normal())))
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.csv"
    path.write_text(REPORT)
    return path


def test_the_text_of_a_snapshot_is_a_call_tree(saved: Path) -> None:
    assert said(saved) == (
        "locktop callers: store 4711 on db1, 2026-11-21T03:12:45.678Z\n"
        "time waited: 1 h 31 min\n"
        "waits for work, not shown: 4 h 02 min\n"
        "\n"
        "   share       in all       itself  function\n"
        "  94.4 %   1 h 26 min            0  start_thread in libc.so.6\n"
        "  94.4 %   1 h 26 min            0  worker_main at worker.c:25\n"
        "  94.4 %   1 h 26 min            0  serve_one at serve.c:77\n"
        "  67.7 %   1 h 02 min            0  + serve_get at serve.c:130\n"
        "  67.7 %   1 h 02 min   1 h 02 min    cache_get at cache.c:42\n"
        "  67.7 %   1 h 02 min                 mutex g_cache_lock\n"
        "  26.7 %  24 min 27 s            0  + serve_put at serve.c:164\n"
        "  26.7 %  24 min 27 s  24 min 27 s    cache_put at cache.c:88\n"
        "  26.7 %  24 min 27 s                 mutex g_cache_lock\n"
        "   5.6 %        310 s            0  main at main.c:9\n"
        "   5.6 %        310 s            0  libplugin.so+0x2000\n"
        "   5.6 %        310 s        310 s  table::lookup(table::key const&,…:shared_mutex&)"
        " at table.cc:301\n"
        "   5.6 %        310 s               rwlock g_table_lock\n"
        "1 branch under 0.5 % left out; --format json has all\n"
    )


def test_a_msgpack_snapshot_is_read(saved: Path, tmp_path: Path) -> None:
    packed = tmp_path / "saved.msgpack"
    packed.write_bytes(msgpack.packb(document(scenarios.normal())))
    assert said(packed) == said(saved)


def test_idle_waits_are_listed_on_request_and_add_nothing(saved: Path) -> None:
    text = said(saved, "--idle")
    assert "time waited: 1 h 31 min\n" in text
    assert "    idle (3 h 00 min)               + cond pool_ready\n" in text


def test_the_butterfly_of_a_function_has_callers_and_callees(saved: Path) -> None:
    lines = said(saved, "--function", "serve_one").splitlines()
    assert lines[-4:] == [
        "  94.4 %   1 h 26 min                   worker_main at worker.c:25",
        "  94.4 %   1 h 26 min            0  > serve_one at serve.c:77",
        "  67.7 %   1 h 02 min                   serve_get at serve.c:130",
        "  26.7 %  24 min 27 s                   serve_put at serve.c:164",
    ]
    assert said(saved, "--function", "e_on").splitlines() == lines


def test_each_weight_has_its_figures(saved: Path) -> None:
    assert "\nwaits: 270,519" in said(saved, "--weight", "count")
    assert "held by worker-2\n" in said(saved, "--weight", "blame")
    assert "there are wait, count, blame" in complaint(saved, "--weight", "colour")


def test_a_snapshot_without_blame_says_so(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    normal: Snapshot = scenarios.normal()
    locks = tuple(replace(lock, blame=()) for lock in normal.locks)
    path.write_text(json.dumps(document(replace(normal, locks=locks))))
    text = said(path, "--weight", "blame")
    assert "no thread waited\n" in text
    assert "  this snapshot has no blame\n" in text


def test_a_deadlock_is_among_the_notes(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document(scenarios.deadlock())))
    assert said(path).endswith("\nNOTES\n  3 threads deadlocked\n")


def test_a_snapshot_without_stacks_says_why(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    locks = tuple(replace(lock, wait_stacks=()) for lock in scenarios.normal().locks)
    counting = replace(scenarios.normal(), locks=locks, level="counting")
    path.write_text(json.dumps(document(counting)))
    text = said(path)
    assert " 100.0 %   1 h 31 min   1 h 31 min  no stack known\n" in text
    assert "  no stacks are taken at level counting\n" in text


def test_json_has_every_node_with_its_depth(saved: Path) -> None:
    whole = json.loads(said(saved, "--format", "json"))
    assert (whole["format"], whole["version"]) == ("locktop.callers", 1)
    assert (whole["weight"], whole["unit"], whole["estimate"]) == ("wait", "s", False)
    assert (whole["pid"], whole["notes"]) == (4711, [])
    entries = [node for node in whole["nodes"] if node["depth"] == 0]
    assert sum(node["value"] for node in entries) == pytest.approx(whole["value"])
    get = next(node for node in whole["nodes"] if node["function"] == "cache_get")
    assert get["place"] == {"file": "/src/store/cache.c", "line": 42}
    assert get["own"] == get["value"] == pytest.approx(get["share"] * whole["value"])
    assert not any(node["idle"] for node in whole["nodes"])
    idle = json.loads(said(saved, "--format", "json", "--idle"))
    assert len(idle["nodes"]) > len(whole["nodes"])


def test_the_json_of_a_butterfly_has_its_parts(saved: Path) -> None:
    whole = json.loads(said(saved, "--format", "json", "--function", "cache_get"))
    assert "nodes" not in whole
    made = whole["butterfly"]
    assert [wing["function"] for wing in made["callers"]] == ["serve_get"]
    assert [wing["part"] for wing in made["callees"]] == ["lock", "lock"]


def test_csv_is_written_whole_overwrites_nothing_and_is_read_back(
    saved: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ours.csv"
    assert said(saved, "--format", "csv", "-o", path) == ""
    assert path.read_text() == said(saved, "--format", "csv")
    assert "exists; --force writes over it" in complaint(saved, "--format", "csv", "-o", path)
    assert said(saved, "--format", "csv", "-o", path, "--force") == ""
    text = said(path)
    assert "an estimate: there are no whole stacks\n" in text
    assert "mutex g_cache_lock\n" in text


def test_a_report_of_visual_studio_is_read(report: Path) -> None:
    head, _, page = said(report).partition("\nsamples")
    assert " ".join(head.split()) == f"locktop callers: {report}, a caller/callee report"
    assert "samples" + page == (
        "samples: 100, an estimate: there are no whole stacks\n"
        "\n"
        "   share       in all       itself  function\n"
        " 100.0 %          100           40  main in p.exe\n"
        "  60.0 %           60           60  work in p.exe\n"
        "\n"
        "NOTES\n"
        "  line 6 is left out: it has 3 cells, 4 are needed\n"
    )
    assert "there are samples\n" in complaint(report, "--weight", "wait")
    assert "is such a report already" in complaint(report, "--format", "csv")


def test_hostile_names_are_sanitized(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document(scenarios.hostile())))
    for form in ("text", "json", "csv"):
        text = said(path, "--format", form, "--idle")
        assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 100])
def test_no_line_exceeds_the_width_of_a_ticket(width: int) -> None:
    from locktop.collector.render.profiles.profile import SnapshotProfile, weight_of
    from locktop.collector.render.text import call_tree

    profile = SnapshotProfile(scenarios.hostile())
    weight = weight_of(profile.weights, None)
    text = call_tree.render_tree(profile, weight, True, width)
    assert max(map(len, text.splitlines())) <= width
    page = call_tree.render_butterfly(
        profile, weight, profile.tree("wait").children[0].step, True, width
    )
    assert max(map(len, page.splitlines())) <= width


def test_wrong_use_of_callers_is_a_one_line_error(saved: Path, tmp_path: Path) -> None:
    assert "one of -p PID and FILE" in complaint()
    assert "one of -p PID and FILE" in complaint("-p", "1", saved)
    assert "no such file" in complaint(tmp_path / "nothing")
    assert "a directory, not a regular file" in complaint(tmp_path)
    assert "no function is called 'nobody'" in complaint(saved, "--function", "nobody")
    assert "3 functions are called like 'serve_'" in complaint(saved, "--function", "serve_")
    assert "needs the name of a file" in complaint(saved, "-o", "")
    (tmp_path / "poem").write_text("roses are red\n")
    assert "is no caller/callee report" in complaint(tmp_path / "poem")
    (tmp_path / "half.json").write_text(saved.read_text()[:1000])
    assert "is no snapshot of locktop" in complaint(tmp_path / "half.json")
    assert "--hz needs --inside and -p PID" in complaint("-p", "1", "--hz", "50")
    assert "--hz needs --inside and -p PID" in complaint(saved, "--inside", "x", "--hz", "50")
    assert "-d needs --inside and -p PID" in complaint("-p", "1", "-d", "2")
