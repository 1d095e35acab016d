"""How often a process may be sampled, so that the tool takes little of a CPU."""

from __future__ import annotations

#: Of a CPU, for the whole tool, as far as what it does beside samples leaves something.
_SHARE = 0.045
_MIN_FOR_SAMPLES, _MAX_FOR_SAMPLES = 0.002, 0.02
#: Between two samples.
SHORTEST_S, _LONGEST_S = 0.005, 2.0


class CpuBudget:
    """What looks, the screen and all else take of a CPU, and what they leave."""

    def __init__(self) -> None:
        self._others = 0.0  # their share of a CPU, from look to look
        self._scanned_at = self._used_s = 0.0
        self._samples_s = 0.0  # since the last look
        self._took_s = 0.0  # the last sample

    def note_scan(self, at: float, used_s: float) -> None:
        """A look begins ``at`` (time.monotonic()), and until then the tool has used so much of
        CPUs' time (time.process_time())."""
        if self._scanned_at:
            others_s = used_s - self._used_s - self._samples_s
            self._others = max(others_s, 0.0) / max(at - self._scanned_at, SHORTEST_S)
        self._scanned_at, self._used_s, self._samples_s = at, used_s, 0.0

    def note_sample(self, took_s: float) -> None:
        """A sample took so much of a CPU's time."""
        self._samples_s += took_s
        self._took_s = took_s

    @property
    def pause_s(self) -> float:
        """How long after a sample the next one is due, if it takes as much as the last."""
        share = min(max(_SHARE - self._others, _MIN_FOR_SAMPLES), _MAX_FOR_SAMPLES)
        return min(max(self._took_s / share, SHORTEST_S), _LONGEST_S)
