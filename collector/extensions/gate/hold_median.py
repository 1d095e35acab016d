"""The median of lengths that a coarse clock measured."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: The library notes a hold within one step of the clock as this length.
_SHORTEST = 1


def median(counts: Mapping[int, int]) -> float:
    """Return the median of lengths, within the step of the clock.

    A clock may advance by steps of 10 ns and show holds of 22 ns as 20 or 30 ns. The plain median
    would then hide a growth to 24 ns. So the holds of one length count as spread over one step.

    Args:
        counts: how often each length occurs, in ticks; not empty.

    Returns:
        ticks, above 0.
    """
    step = math.gcd(*(length for length in counts if length > _SHORTEST)) or _SHORTEST
    half, below, length = sum(counts.values()) / 2, 0, 0
    for length in sorted(counts):
        if below + counts[length] >= half:
            break
        below += counts[length]
    position = (half - below) / counts[length] - 0.5
    return max(length + step * position, _SHORTEST / 2)
