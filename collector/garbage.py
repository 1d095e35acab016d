"""Python's collector of cycles, out of the way of looks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collected() -> Iterator[None]:
    """Hold off the collector of cycles: what a look makes has none, and to go through all that
    lives, again and again while thousands of objects are made, takes as long as to make them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
