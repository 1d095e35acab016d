"""How many of very many similar cases a test tries: some, or all with LOCKTOP_THOROUGH=1."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

_IS_THOROUGH = os.environ.get("LOCKTOP_THOROUGH") == "1"


def some(cases: Sequence[Case], count: int) -> list[Case]:
    """Return the first case, the last one and a choice of the others, in their order.

    The choice is always the same. `make fuzz` tries all cases.
    """
    if _IS_THOROUGH or len(cases) <= count:
        return list(cases)
    between = random.Random(count).sample(range(1, len(cases) - 1), count - 2)
    return [cases[0], *(cases[number] for number in sorted(between)), cases[-1]]
