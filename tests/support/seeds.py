"""The seeds of a test that repeats itself with random input."""

from __future__ import annotations

from collections.abc import Iterator


def seeds(count: int) -> Iterator[int]:
    """Yield ``count`` seeds. The last line that a failed test printed names its seed."""
    for seed in range(count):
        print(f"seed {seed}")
        yield seed
