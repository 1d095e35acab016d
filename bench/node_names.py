"""Measures the names of a snapshot of Node.js, a program of 100 MB (docs/overhead.md).

Node.js makes some thousand locks, and then waits. Each run is a new process without the cache on
disk. The figures are CPU seconds, which a busy machine changes little.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys

from locktop.collector.sources.launch import preload_environment

_SECONDS = 6
_PROGRAM = """\
const { Worker, isMainThread } = require('worker_threads');
const crypto = require('crypto'), fs = require('fs');
const end = Date.now() + 1000 * SECONDS;
function work() { if (Date.now() < end) crypto.pbkdf2('a', 'b', 2000, 64, 'sha512', work); }
for (let i = 0; i < 4; i++) work();
function spin() {
    let made = {};
    for (let i = 0; i < 20000; i++) made['k' + i] = [i, {a: i}];
    if (Date.now() < end) JSON.stringify(made);
}
setInterval(() => { fs.readFile('/proc/self/stat', () => {}); if (Date.now() < end) spin(); }, 100);
if (isMainThread) {
    for (let i = 0; i < 3; i++) new Worker(PROGRAM, { eval: true });
    setTimeout(() => console.log('ready'), 1000 * SECONDS + 1000);
}
"""
_SCAN = """\
import json, sys, threading, time
from locktop.collector.sources.attach import attach
source = attach(int(sys.argv[1]))
used = time.process_time()
snapshot = source.scan(resolve=sys.argv[2] == "all")
names = [time.clock_gettime(time.pthread_getcpuclockid(one.ident))
         for one in threading.enumerate() if one.name == "names"]
print(json.dumps({
    "cpu": time.process_time() - used,
    "thread": sum(names),
    "locks": len(snapshot.locks),
    "stacks": len(snapshot.stacks),
    "left": snapshot.names_left,
}))
"""


def main() -> None:
    """Print the figures of a number of runs."""
    node = shutil.which("node")
    if node is None:
        print("node is missing: apt-get install nodejs")
        return
    program = _PROGRAM.replace("SECONDS", str(_SECONDS))
    program = program.replace("PROGRAM", json.dumps(program.replace("PROGRAM", '""')))
    environment = {**os.environ, **preload_environment(), "LOCKTOP_CACHE": "none"}
    with subprocess.Popen(
        [node, "-e", program], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        rounds = range(int(sys.argv[1]))
        first, whole = ([_scan(process.pid, names) for _ in rounds] for names in ("", "all"))
        process.terminate()
    print(f"{node}: {whole[-1]['locks']} locks, {whole[-1]['stacks']} stacks")
    print(f"names left after the first scan of a screen: {first[-1]['left']}")
    _print("first scan of a screen", [one["cpu"] for one in first])
    _print("scan with all names", [one["cpu"] for one in whole])
    _print("of it the thread that reads names", [one["thread"] for one in whole])


def _print(what: str, seconds: list[float]) -> None:
    seconds.sort()
    middle = statistics.median(seconds)
    print(f"{what}, CPU seconds: {seconds[0]:.3f} at least, {middle:.3f} median,"
          f" {seconds[-1]:.3f} at most")  # fmt: skip


def _scan(pid: int, names: str) -> dict[str, float]:
    command = [sys.executable, "-c", _SCAN, str(pid), names]
    environment = {**os.environ, "LOCKTOP_CACHE": "none"}
    said = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


if __name__ == "__main__":
    main()
