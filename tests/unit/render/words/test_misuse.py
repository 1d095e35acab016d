"""The sentence of each misuse of a lock."""

from __future__ import annotations

import pytest

from locktop.collector.model import Misuse, MisuseKind
from locktop.collector.render.words.misuse import misuse_sentence


@pytest.mark.parametrize(
    ("kind", "other", "count", "sentence"),
    [
        (MisuseKind.RELEASED_OTHERS, 12, 1, "t11 released it while t12 held it"),
        (MisuseKind.RELEASED_OTHERS, 12, 2, "t11 released it while t12 held it, at least 2 times"),
        (MisuseKind.RELEASED_OTHERS, 0, 1, "t11 released it while a thread held it"),
        (MisuseKind.RELEASED_FREE, 0, 3, "t11 released it while no thread held it, 3 times"),
        (
            MisuseKind.TAKEN_AGAIN,
            11,
            1,
            "t11 requested the lock while it held it, and the lock is not recursive",
        ),
        (MisuseKind.DESTROYED_HELD, 11, 1, "t11 destroyed it while it held it"),
        (MisuseKind.DESTROYED_WAITED, 0, 1, "t11 destroyed it while a thread waited for it"),
        (
            MisuseKind.TWO_MUTEXES,
            11,
            1,
            "t11 waited with another mutex than other threads at that time: g11",
        ),
        (MisuseKind.WAITED_UNHELD, 12, 1, "t11 waited for a condition with it while t12 held it"),
        (
            MisuseKind.WAITED_UNHELD,
            0,
            1,
            "t11 waited for a condition with it while no thread held it",
        ),
        (MisuseKind.KEPT_AT_END, 0, 1, "t11 ended while it held the lock"),
        (
            MisuseKind.HELD_AT_FORK,
            12,
            1,
            "t11 waits for it for good: t12 of the parent process held it at the fork, and no"
            " thread of this process releases it",
        ),
    ],
)
def test_a_misuse_names_the_threads(
    kind: MisuseKind, other: int, count: int, sentence: str
) -> None:
    misuse = Misuse(kind, 1, 11, other, 0, count, 60.0)
    assert misuse_sentence(misuse, "t{}".format, "g{}".format) == sentence
