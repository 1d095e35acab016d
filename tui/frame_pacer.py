"""How often to draw: at the rate that the user chose, or less on a slow terminal."""

from __future__ import annotations

from locktop.tui.views.status import Pace

#: Snapshots a second, the steps of the keys + and -.
RATES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0)
DEFAULT_RATE = 2.0
#: Drawings skipped in a row before the rate is lowered, and made in a row before it is raised.
SKIPS_TO_LOWER = 2
DRAWN_TO_RAISE = 10


class Pacer:
    """Decides for each snapshot whether to draw it; lowers the rate on a slow terminal."""

    def __init__(self, rate: float = DEFAULT_RATE) -> None:
        self._target = min(range(len(RATES)), key=lambda number: abs(RATES[number] - rate))
        self._actual = self._target
        self._skipped = 0
        self._drawn = 0

    @property
    def pace(self) -> Pace:
        """The chosen rate and the actual rate."""
        return Pace(RATES[self._target], RATES[self._actual])

    @property
    def interval_s(self) -> float:
        """Seconds from one snapshot to the next."""
        return 1.0 / RATES[self._actual]

    def step(self, steps: int) -> None:
        """Choose a rate that many steps higher, or lower if negative."""
        self._target = max(0, min(len(RATES) - 1, self._target + steps))
        self._actual = self._target
        self._skipped = self._drawn = 0

    def may_draw(self, drained: bool) -> bool:
        """Whether to draw now; ``drained``: the terminal has taken all output."""
        if not drained:
            self._drawn = 0
            self._skipped += 1
            if self._skipped >= SKIPS_TO_LOWER and self._actual > 0:
                self._actual -= 1
                self._skipped = 0
            return False
        self._skipped = 0
        self._drawn += 1
        if self._drawn >= DRAWN_TO_RAISE and self._actual < self._target:
            self._actual += 1
            self._drawn = 0
        return True
