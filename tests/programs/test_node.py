"""Node.js: its workers wait for each other through mutexes and conditions of libc."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import tool, watched
from support.targets import Target, source_of
from support.watched import Need

from locktop.collector.linux import procfs
from locktop.collector.sources.launch import preload_environment
from locktop.collector.symbols.jit.jitdump import JitDump
from locktop.collector.symbols.jit.perf_map import PerfMap
from locktop.collector.symbols.memory_map import parse

pytestmark = pytest.mark.big

WORKERS, ROUNDS = 4, 20000


@pytest.mark.parametrize("level", ["contended", "all"])
def test_workers_of_node(level: str, need: Need) -> None:
    command = [str(need("node", "nodejs")), str(source_of("node_workers_add_up"))]
    without, seen = watched.run(command), watched.run(command, level)
    wanted = f"{WORKERS * ROUNDS}\n"
    assert (without.status, without.output) == (seen.status, seen.output) == (0, wanted)
    assert watched.threads_seen(seen) > WORKERS
    assert watched.total(seen.last, "acquisitions", "mutex") > WORKERS * ROUNDS
    assert watched.total(seen.last, "wait_s", "cond") > 0, "Atomics.wait"


def test_workers_of_node_without_work_are_idle(need: Need) -> None:
    # One task starts all threads of libuv's pool.
    script = (
        "require('crypto').pbkdf2('a', 'b', 1, 1, 'sha1', () => console.log('ready'));"
        "setInterval(() => {}, 1000)"
    )
    command = [str(need("node", "nodejs")), "-e", script]
    with Target(command, preload_environment("contended")) as target:
        target.expect("ready")

        def all_wait(document: dict[str, Any]) -> bool:
            whys = [one["waiting_for"]["why"] for one in document["threads"] if one["waiting_for"]]
            return whys.count("node-pool") >= 8

        found = tool.scan_until(target.pid, all_wait, "both pools at rest")
        waits = [one["waiting_for"] for one in found["threads"] if one["waiting_for"]]
        assert all(wait["idle"] for wait in waits)
        largest = max(found["thread_groups"], key=lambda group: len(group["threads"]))
        assert (len(largest["threads"]), largest["idle"]) == (4, True)


def test_both_files_of_v8_name_its_code_alike(need: Need, tmp_path: Path) -> None:
    """The perf map, which this test parses, and the jitdump file have the same names."""
    node = str(need("node", "nodejs"))
    script = "setInterval(() => {}, 1000); console.log('ready')"
    command = [node, "--perf-basic-prof", "--perf-prof", f"--logfile={tmp_path}/v8.log", "-e"]
    process = subprocess.Popen([*command, script], cwd=tmp_path, stdout=subprocess.PIPE)
    written = Path(f"/tmp/perf-{process.pid}.map")
    dump, names = JitDump(process.pid), PerfMap(process.pid)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        mappings = parse(procfs.maps(process.pid))
        last: dict[int, str] = {}
        for line in written.read_text().splitlines():
            start, _, name = line.split(" ", 2)
            last[int(start, 16)] = name
        assert len(last) > 1000
        mapped = {start: names.find(start) for start in last}
        assert mapped == last
        dumped = {start: dump.find(start, mappings) for start in last}
        same = [start for start, found in dumped.items() if found and found[0] == last[start]]
        # Node.js writes either file when its buffer is full, so the end of one may be missing.
        assert len(same) > 0.8 * len(last)
        others = {start: found for start, found in dumped.items() if found and start not in same}
        assert len(others) < 0.02 * len(last), others
    finally:
        process.kill()
        process.communicate()
        written.unlink(missing_ok=True)
        dump.close()
        names.close()
