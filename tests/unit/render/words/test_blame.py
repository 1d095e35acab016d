"""The sentence that divides the waits for a lock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Blame, Kind
from locktop.collector.render.words.blame import deed, divided, evidence, hand_over, site_verb

HOLDER, ENDED, WOKEN = Blame(7, 0, 9.0), Blame(0, 0x40, 9.0), Blame(0, 0, 9.0)
SHARES = ((HOLDER, 4.0), (ENDED, 1.1), (WOKEN, 5.5))


def test_the_parts_are_behind_holders_and_woken() -> None:
    assert divided(SHARES, Kind.MUTEX, scenarios.normal()) == (
        "of 10.6 s of waiting, 5.10 s behind holders, 5.50 s woken and not yet running"
    )
    text = divided(SHARES, Kind.MUTEX, scenarios.normal(), 6)
    assert text.startswith("of 10.6s of waiting, 5.10s behind")


@pytest.mark.parametrize("fields", [{"complete": False}, {"level": "counting"}])
def test_where_holders_may_be_unknown_the_sentence_says_so(fields: dict[str, object]) -> None:
    snapshot = replace(scenarios.normal(), **fields)
    assert divided(SHARES, Kind.MUTEX, snapshot).endswith(", 5.50 s without a known holder")


def test_who_holds_a_futex_now_is_not_known() -> None:
    text = divided(SHARES, Kind.FUTEX, scenarios.normal())
    assert text.endswith(", 5.50 s without a known holder")


@pytest.mark.parametrize("shares", [(), SHARES[:2], SHARES[2:]])
def test_one_part_alone_has_no_sentence(shares: tuple[tuple[Blame, float], ...]) -> None:
    assert divided(shares, Kind.MUTEX, scenarios.normal()) == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind.MUTEX, ("", "taken", "took it", ("released it", "released"))),
        (
            Kind.FUTEX,
            (
                "as wakes of its waiters show", "released", "released it",
                ("woke its waiters", "woken"),
            ),
        ),
        (
            Kind.SEM,
            (
                "as posts while threads waited show", "posted", "posted it",
                ("posted it", "posted"),
            ),
        ),
    ],
)  # fmt: skip
def test_the_words_tell_how_holders_are_known(kind: Kind, said: tuple[object, ...]) -> None:
    assert (evidence(kind), site_verb(kind), deed(kind), hand_over(kind)) == said
