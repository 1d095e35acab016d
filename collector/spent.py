"""How often a process may be sampled, so that the tool takes little of a CPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Of a CPU, for samples and looks together, as far as looks leave something.
_SHARE = 0.045
_LEAST_FOR_SAMPLES, _MOST_FOR_SAMPLES = 0.002, 0.02
#: Between two samples.
SHORTEST_S, _LONGEST_S = 0.005, 2.0


class Spent:
    """What looks take of a CPU, and what they leave."""

    def __init__(self) -> None:
        self._looks = 0.0  # share of a CPU from the look before the last one on
        self._looked_at = 0.0

    @contextmanager
    def on_a_look(self) -> Iterator[None]:
        """Measure a look, which one thread makes from begin to end."""
        began, used = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            self.note_look(began, time.thread_time() - used)

    def note_look(self, at: float, took_s: float) -> None:
        """A look that was begun ``at`` (time.monotonic()) took so much of a CPU's time."""
        if self._looked_at:
            self._looks = took_s / max(at - self._looked_at, took_s)
        self._looked_at = at

    def pause_s(self, took_s: float) -> float:
        """Return how long to wait for the next sample if each takes so much of a CPU's time."""
        share = min(max(_SHARE - self._looks, _LEAST_FOR_SAMPLES), _MOST_FOR_SAMPLES)
        return min(max(took_s / share, SHORTEST_S), _LONGEST_S)
