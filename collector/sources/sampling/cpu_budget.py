"""The rate of samples, so that locktop uses little of a CPU."""

from __future__ import annotations

#: Share of a CPU for all of locktop. Samples take what the other work leaves of it, within bounds.
_SHARE = 0.045
_MIN_FOR_SAMPLES, _MAX_FOR_SAMPLES = 0.002, 0.02
#: Seconds between two samples.
SHORTEST_S, _LONGEST_S = 0.005, 2.0


class CpuBudget:
    """The CPU use of scans, the screen and all other work, and the rest for samples."""

    def __init__(self) -> None:
        self._others = 0.0  # share of a CPU of all other work, from scan to scan
        self._scanned_at = self._used_s = 0.0
        self._samples_s = 0.0  # since the last scan
        self._took_s = 0.0  # of the last sample

    def note_scan(self, began_at: float, used_s: float) -> None:
        """Note the begin of a scan.

        Args:
            began_at: time.monotonic().
            used_s: CPU time that locktop has used so far (time.process_time()).
        """
        if self._scanned_at:
            others_s = used_s - self._used_s - self._samples_s
            self._others = max(others_s, 0.0) / max(began_at - self._scanned_at, SHORTEST_S)
        self._scanned_at, self._used_s, self._samples_s = began_at, used_s, 0.0

    def note_sample(self, took_s: float) -> None:
        """Note the CPU time of a sample."""
        self._samples_s += took_s
        self._took_s = took_s

    @property
    def pause_s(self) -> float:
        """Seconds from a sample to the next one, if the next takes as much CPU time as the last."""
        share = min(max(_SHARE - self._others, _MIN_FOR_SAMPLES), _MAX_FOR_SAMPLES)
        return min(max(self._took_s / share, SHORTEST_S), _LONGEST_S)
