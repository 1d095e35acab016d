"""Python's collector of cycles, out of the way of looks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects made and not let go of, before it looks among the young ones: more than a look at some
#: thousand threads makes before it lets go of those that the look before made.
_MIN_THRESHOLD = 100_000


@contextmanager
def paused() -> Iterator[None]:
    """Hold off the collector of cycles: what a look makes has none, and to go through all that
    lives, again and again while thousands of objects are made, takes as long as to make them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if 0 < gc.get_threshold()[0] < _MIN_THRESHOLD:
                gc.set_threshold(_MIN_THRESHOLD)
            gc.enable()
