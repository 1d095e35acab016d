"""Measures what very many locks and children cost: ``python bench/children.py [ROUNDS]``.

Each case runs bench/children.c without the library, with its hooks alone (liblocktop-nop.so) and
with the library, in turns. The table has the CPU seconds and the seconds of each, the median with
both quartiles, and the page faults. Other load of the machine makes the seconds larger.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from locktop.collector.sources.launch import preload_environment

CASES = (
    ("locks", 1_000),
    ("locks", 10_000),
    ("locks", 100_000),
    ("locks", 1_000_000),
    ("plain", 1_000),
    ("lock", 1_000),
    ("exec", 300),
)


def run(program: Path, kind: str, count: int, library: str) -> list[float]:
    """Return the seconds, the CPU seconds and the page faults of one run."""
    result = subprocess.run(
        [program, kind, str(count)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "LD_PRELOAD": library},
    )
    return [float(word) for word in result.stdout.split()]


def spread(values: list[float]) -> str:
    """Return the median of the values, with both quartiles."""
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    """Print a line for each case and each library."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    library = preload_environment(None)["LD_PRELOAD"].partition(":")[0]
    libraries = {"none": "", "hooks": library.replace(".so", "-nop.so"), "library": library}
    source = Path(__file__).with_suffix(".c")
    print("| case | count | preloaded | CPU s | s | page faults |")
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "children"
        subprocess.run(["cc", "-O2", "-pthread", source, "-o", program], check=True)
        for kind, count in CASES:
            results: dict[str, list[list[float]]] = {name: [] for name in libraries}
            for _ in range(rounds):
                for name, path in libraries.items():
                    results[name].append(run(program, kind, count, path))
            for name, values in results.items():
                wall, cpu, faults = (list(column) for column in zip(*values, strict=True))
                median = statistics.median(faults)
                print(
                    f"| {kind} | {count} | {name} | {spread(cpu)} | {spread(wall)} | {median:.0f} |"
                )


if __name__ == "__main__":
    main()
