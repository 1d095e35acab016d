"""A pause of Python's cycle collector during scans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Net number of new objects before the collector examines the young objects. A scan of some
#: thousand threads makes fewer objects before it releases the objects of the last scan.
_MIN_THRESHOLD = 100_000


@contextmanager
def paused() -> Iterator[None]:
    """Pause the cycle collector.

    A scan makes no cycles. A scan makes thousands of objects, and the collector would examine all
    living objects again and again meanwhile. These examinations take as long as the scan itself.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if 0 < gc.get_threshold()[0] < _MIN_THRESHOLD:
                gc.set_threshold(_MIN_THRESHOLD)
            gc.enable()
