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
began, used = time.monotonic(), time.process_time()
first = source.scan()
at_first = time.monotonic() - began, time.process_time() - used
snapshot = source.scan(resolve=True)
names = [time.clock_gettime(time.pthread_getcpuclockid(one.ident))
         for one in threading.enumerate() if one.name == "names"]
print(json.dumps({
    "locks": len(snapshot.locks),
    "stacks": len(snapshot.stacks),
    "names left": [first.names_left, snapshot.names_left],
    "first scan": at_first[1],
    "thread of names": sum(names),
    "all": time.process_time() - used,
}))
"""


def main() -> None:
    """Print the medians of a number of runs."""
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
        runs = [_scan(process.pid) for _ in range(int(sys.argv[1]))]
        process.terminate()
    print(f"{node}: {runs[-1]}")
    for figure in ("first scan", "thread of names", "all"):
        seconds = sorted(float(run[figure]) for run in runs)
        middle = statistics.median(seconds)
        print(f"CPU seconds, {figure}: {seconds[0]:.2f} at least, {middle:.2f} median,"
              f" {seconds[-1]:.2f} at most")  # fmt: skip


def _scan(pid: int) -> dict[str, float]:
    command = [sys.executable, "-c", _SCAN, str(pid)]
    environment = {**os.environ, "LOCKTOP_CACHE": "none"}
    said = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


if __name__ == "__main__":
    main()
