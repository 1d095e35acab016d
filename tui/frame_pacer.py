"""How often to draw: as asked, or less where the terminal cannot keep up."""

from __future__ import annotations

from locktop.tui.views.status import Pace

#: Pictures a second that + and - step through.
RATES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0)
DEFAULT_RATE = 2.0
#: Pictures skipped in a row before the rate is lowered, and drawn in a row before it is raised.
SKIPS_TO_LOWER = 2
DRAWN_TO_RAISE = 10


class Pacer:
    """Decides for each picture whether to draw it; lowers the rate of a slow terminal."""

    def __init__(self, rate: float = DEFAULT_RATE) -> None:
        self._target = _nearest(rate)
        self._actual = self._target
        self._skipped = 0
        self._drawn = 0

    @property
    def pace(self) -> Pace:
        """What was asked for and what is done."""
        return Pace(RATES[self._target], RATES[self._actual])

    @property
    def interval_s(self) -> float:
        """Seconds from one picture to the next."""
        return 1.0 / RATES[self._actual]

    def step(self, steps: int) -> None:
        """Ask for a higher (positive) or a lower rate."""
        self._target = max(0, min(len(RATES) - 1, self._target + steps))
        self._actual = self._target
        self._skipped = self._drawn = 0

    def may_draw(self, drained: bool) -> bool:
        """Whether to draw now; ``drained``: the terminal has taken all there was."""
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


def _nearest(rate: float) -> int:
    return min(range(len(RATES)), key=lambda i: abs(RATES[i] - rate))
