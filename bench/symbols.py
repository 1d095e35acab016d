"""Measures the time to name a stack in a program with much debug information (docs/overhead.md).

The runs are without and with the cache on disk. Each run is a new process, as at locktop's start.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from big_program import build

_SCAN = """\
import json, resource, sys, time
from locktop.collector.symbols import modules  # otherwise imported when first needed
from locktop.collector.symbols.resolver import Resolver
addresses = [int(word, 16) for word in sys.argv[2:]]
begin = time.monotonic()
resolver = Resolver(int(sys.argv[1]))
for address in addresses:
    resolver.frames(address)
assert resolver.wait(120)
end = time.monotonic()
frames = [frame for address in addresses for frame in resolver.frames(address)]
print(json.dumps({
    "seconds": end - begin,
    "cpu": time.process_time(),
    "frames": len(frames),
    "lines": sum(frame.line is not None for frame in frames),
    "inlined": sum(frame.inlined for frame in frames),
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "notes": resolver.notes(),
}))
"""


def scan(pid: int, addresses: list[str], cache: str) -> dict[str, float]:
    """Name the addresses in a new process."""
    command = [sys.executable, "-c", _SCAN, str(pid), *addresses]
    environment = {**os.environ, "LOCKTOP_CACHE": cache}
    said = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


def main() -> None:
    megabytes, rounds = int(sys.argv[1]), int(sys.argv[2])
    directory = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(tempfile.mkdtemp())
    program = build(directory, megabytes)
    print(f"{program}: {program.stat().st_size / 1e6:.0f} MB")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        addresses = process.stdout.readline().decode().split()
        with tempfile.TemporaryDirectory() as cache:
            scan(process.pid, addresses, cache)  # loads the file into memory and fills the cache
            cold = [scan(process.pid, addresses, "none") for _ in range(rounds)]
            warm = [scan(process.pid, addresses, cache) for _ in range(rounds)]
        process.communicate()
    for name, scans in (("without the cache", cold), ("with it", warm)):
        seconds = sorted(one["seconds"] for one in scans)
        middle = statistics.median(seconds)
        print(
            f"{name}: {seconds[0]:.3f} s at least, {middle:.3f} median, {seconds[-1]:.3f} at most"
        )
        print("  ", scans[0])


if __name__ == "__main__":
    main()
