"""`locktop export` of real processes, read by the tools that the formats are for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support import exported, npm, second_reader, tool
from support.eventually import until
from support.recordings import end_of, recording
from support.requirements import command as need
from support.targets import Compiler, StartTarget, Target, remove_file_of, start_time

from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS
from locktop.collector.sources.launch import preload_environment

WITH_WAITS = ("perfetto", "chrome", "pprof", "speedscope", "folded", "csv", "parquet")
HOSTILE = "<img src=x onerror=alert(1)>';\\\"\x1b[2J\n=cmd|'/c calc'!A0;" + "n" * 4096


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> Path:
    """A recording of a busy program."""
    file = tmp_path_factory.mktemp("export") / "crowd.locktop"
    with Target([compiler.program("busy_crowd"), "8"], preload_environment(None)) as target:
        started = start_time(target.pid)
        target.expect("ready")
        with recording(target.pid, file, "-d", "3", "--every", "100ms") as recorder:
            end_of(recorder)
    remove_file_of(target.pid, started)
    return file


def export(name: str, to: Path, *options: str | int | Path) -> bytes:
    """Run the command, and return the file that it wrote."""
    done = tool.run("export", *map(str, options), "--to", name, "-o", str(to))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return to.read_bytes()


def waits_ns(name: str, data: bytes, path: Path) -> int:
    """Return the sum of all contended waits of a file."""
    if name == "perfetto":
        return exported.ReadTrace(data).sum_ns("Lock contention")
    if name == "chrome":
        return exported.chrome_sum_ns(data)
    if name == "pprof":
        return sum(sample.value[1] for sample in exported.pprof(data).sample)
    if name == "speedscope":
        return next(iter(exported.speedscope_profiles(data)))[1]
    if name == "folded":
        return exported.folded(data).total()
    if name == "csv":
        return sum(int(row["wait_ns"]) for row in exported.csv_rows(data) if row["idle"] == "0")
    query = f"SELECT sum(wait_ns)::BIGINT FROM '{path}' WHERE NOT idle"
    row = duckdb.connect().execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_all_formats_have_the_waits_of_the_recording(path: Path, tmp_path: Path) -> None:
    table = exported.csv_rows(export("csv", tmp_path / "w.csv", path))
    read = second_reader.read(path)
    first_ns, last_ns = read.snapshots[0][0], read.snapshots[-1][0]
    # The records of the file, to the nanosecond. A long wait from before the first snapshot is
    # part of the past, too.
    everything = _keys(record for record in read.records if record.wait)
    within = _keys(
        record
        for record in read.records
        if record.wait
        and record.began_ns < last_ns
        and record.began_ns + record.wait_ns >= first_ns
    )
    ours = Counter(
        (int(row["tid"]), int(row["lock"]), int(row["wait_ns"]))
        for row in table
        if row["from_scans"] == "0"
    )
    assert within <= ours <= everything
    assert ours
    total_ns = sum(int(row["wait_ns"]) for row in table if row["idle"] == "0")
    for name in WITH_WAITS:
        file = tmp_path / f"x-{name}{EXPORT_FORMATS[name].suffix}"
        data = export(name, file, path)
        assert waits_ns(name, data, file) == total_ns, name


def _keys(records: Iterable[second_reader.RingRecord]) -> Counter[tuple[int, int, int]]:
    return Counter((record.tid, record.lock, record.wait_ns) for record in records)


def test_a_process_and_a_snapshot_are_exported(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("busy_crowd", "8")
    target.expect("ready")
    saved = tmp_path / "snapshot.json"
    saved.write_text(json.dumps(tool.snapshot(target.pid)))
    for name in WITH_WAITS:
        for source, options in (("live", ("-p", target.pid, "-d", "1")), ("saved", (saved,))):
            file = tmp_path / f"{source}-{name}{EXPORT_FORMATS[name].suffix}"
            assert waits_ns(name, export(name, file, *options), file) > 0, (name, source)


def test_a_sampled_process_is_exported(start_unprepared: StartTarget, tmp_path: Path) -> None:
    target = start_unprepared("busy_crowd", "8")
    target.expect("ready")
    rec = tmp_path / "sampled.locktop"
    with recording(target.pid, rec, "-d", "2", "--every", "50ms") as recorder:
        end_of(recorder)
    table = exported.csv_rows(export("csv", tmp_path / "waits.csv", rec))
    assert {row["from_scans"] for row in table} == {"1"}
    total_ns = sum(int(row["wait_ns"]) for row in table if row["idle"] == "0")
    assert total_ns > 0
    for name in WITH_WAITS:
        file = tmp_path / f"x-{name}{EXPORT_FORMATS[name].suffix}"
        assert waits_ns(name, export(name, file, rec), file) == total_ns, name
    live = tmp_path / "live.folded"
    export("folded", live, "-p", target.pid, "-d", "1")


def test_go_reads_the_profile(path: Path, tmp_path: Path) -> None:
    go = need("go", "golang-go")
    file = tmp_path / "waits.pb.gz"
    profile = exported.pprof(export("pprof", file, path))
    raw = _pprof(go, tmp_path, "-raw", file)
    samples = re.findall(r"^ +(\d+) +(\d+): ", raw, re.MULTILINE)
    # Samples with the same stack and labels are one there: threads may share a name.
    assert [sum(int(sample[part]) for sample in samples) for part in (0, 1)] == [
        sum(sample.value[part] for sample in profile.sample) for part in (0, 1)
    ]
    assert "contentions/count delay/nanoseconds[dflt]" in raw
    assert "thread:[busy_crowd]" in raw
    assert "lock:[busy_crowd.c: locks[" in raw
    top = _pprof(go, tmp_path, "-top", "-unit=ns", file)
    total = sum(sample.value[1] for sample in profile.sample)
    assert f"{total}ns total" in top
    assert "take_locks" in top
    nothing = _pprof(go, tmp_path, "-top", "-unit=ns", f"-diff_base={file}", file)
    assert "accounting for 0, 0%" in nothing


def test_the_reader_of_npm_reads_the_profile(path: Path, tmp_path: Path) -> None:
    node = need("node", "nodejs", optional=True)
    module = npm.package("pprof-format", "2.3.2") / "dist" / "commonjs" / "index.js"
    file = tmp_path / "waits.pb.gz"
    profile = exported.pprof(export("pprof", file, path))
    program = """
        const [module, file] = process.argv.slice(1), {Profile} = require(module);
        const data = require("fs").readFileSync(file);
        const read = Profile.decode(require("zlib").gunzipSync(data));
        const sum = read.sample.map((one) => BigInt(one.value[1])).reduce((a, b) => a + b, 0n);
        console.log(JSON.stringify([read.sample.length, String(sum), read.stringTable.strings]));
    """
    done = subprocess.run([node, "-e", program, module, file], capture_output=True, text=True,
                          check=True)  # fmt: skip
    count, total, strings = json.loads(done.stdout)
    assert count == len(profile.sample)
    assert int(total) == sum(sample.value[1] for sample in profile.sample)
    assert strings == list(profile.string_table)


def _pprof(go: Path, home: Path, *options: str | Path) -> str:
    environment = {**os.environ, "HOME": str(home), "PPROF_TMPDIR": str(home)}
    command = [go, "tool", "pprof", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_profile_of_a_process_has_build_ids(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("busy_crowd", "8")
    target.expect("ready")
    profile = exported.pprof(export("pprof", tmp_path / "p.pb.gz", "-p", target.pid))
    ids = {
        profile.string_table[mapping.filename]: profile.string_table[mapping.build_id]
        for mapping in profile.mapping
    }
    # Pyroscope refuses a profile that is older than an hour.
    assert abs(profile.time_nanos - time.time_ns()) < 3600e9
    readelf = need("readelf", "binutils")
    notes = subprocess.run([readelf, "-n", f"/proc/{target.pid}/exe"], capture_output=True,
                           text=True, check=True).stdout  # fmt: skip
    assert f"Build ID: {ids['busy_crowd']}\n" in notes


def test_blame_has_the_call_that_took_the_lock(path: Path, tmp_path: Path) -> None:
    data = export("folded", tmp_path / "blame.folded", path, "--weight", "blame")
    stacks = exported.folded(data)
    assert any(stack.split(";")[1] in ("read_entry", "write_entry") for stack in stacks)


def test_a_span_has_its_own_waits(path: Path, tmp_path: Path) -> None:
    times = [time_ns for time_ns, _ in second_reader.read(path).snapshots]
    middle_s = (times[len(times) // 2] - times[0]) / 1e9
    whole = exported.csv_rows(export("csv", tmp_path / "whole.csv", path))
    span = ("--from", f"+{middle_s:.9f}s", "--until", "-0s")
    part = exported.csv_rows(export("csv", tmp_path / "part.csv", path, *span))
    assert 0 < len(part) < len(whole)
    for row in part:
        end_ns = int(row["began_ns"]) + int(row["wait_ns"])
        assert end_ns >= times[len(times) // 2]


def test_the_graph_has_the_waiters(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    until(lambda: tool.run("check", "-p", target.pid, "-q").returncode == 1, "deadlock")
    export("dot", tmp_path / "graph.dot", "-p", target.pid)
    dot = need("dot", "graphviz")
    drawn = subprocess.run([dot, "-Tplain", tmp_path / "graph.dot"], capture_output=True,
                           text=True, check=True).stdout  # fmt: skip
    edges = [line for line in drawn.splitlines() if line.startswith("edge ")]
    assert len(edges) == 6


def test_hostile_names_are_text(path: Path, tmp_path: Path) -> None:
    snapshot: dict[str, Any] = json.loads(tool.run("snapshot", str(path)).stdout)
    for lock in snapshot["locks"]:
        lock["name"] = HOSTILE
    for thread in snapshot["threads"]:
        thread["name"] = HOSTILE
    for frames in snapshot["stacks"].values():
        for frame in frames:
            frame["function"] = HOSTILE
    saved = tmp_path / "hostile.json"
    saved.write_text(json.dumps(snapshot))
    for name, form in EXPORT_FORMATS.items():
        file = tmp_path / f"{name}{form.suffix}"
        data = export(name, file, saved)
        if not form.is_binary:
            assert b"\x1b" not in data
            assert b"\n=cmd" not in data
        if name in WITH_WAITS:
            assert waits_ns(name, data, file) > 0, name
        if name.startswith("csv"):
            assert exported.csv_rows(data)
    dot = need("dot", "graphviz")
    subprocess.run([dot, "-Tsvg", tmp_path / "dot.dot", "-o", tmp_path / "d.svg"], check=True)


def test_without_the_further_packages_one_line_says_so(path: Path, tmp_path: Path) -> None:
    # The packages are hidden from the import, as on a host that lacks the extra.
    for name, module in (("perfetto", "perfetto"), ("parquet", "duckdb")):
        program = (
            f"import sys; sys.modules[{module!r}] = None; from locktop.tui.cli import main;"
            f" sys.argv[1:] = ['export', {str(path)!r}, '--to', {name!r}, '-o', 'x'];"
            " sys.exit(main())"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              cwd=tmp_path, check=False)  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "pip install 'locktop[export]'" in done.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--to", "csv"], "export needs one of -p PID and FILE"),
        (["nothing.locktop", "--to", "csv"], "no such file"),
        (["--to", "gif", "x"], "'gif' is none of perfetto, chrome, "),
        (["FILE", "--to", "csv", "--at", "+1s", "--until", "+2s"], "--from and --until are a span"),
        (["FILE", "--to", "csv", "-d", "1"], "a recording has --from and --until"),
    ],
)
def test_wrong_use_is_one_line(options: list[str], says: str, path: Path) -> None:
    done = tool.run("export", *[str(path) if text == "FILE" else text for text in options])
    assert done.returncode == 2
    assert says in done.stderr
