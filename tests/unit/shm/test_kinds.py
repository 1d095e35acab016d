"""The library's kinds of lock are those of the model, with the same traits."""

from __future__ import annotations

import pytest

from locktop.collector.model import CONTENTION_KINDS, Kind
from locktop.collector.model.kinds import TRAITS
from locktop.collector.native import ffi, lib
from locktop.collector.shm.kinds import BY_NUMBER, CONTENDING, KINDS, numbers_of

_PREFIX = "LT_TRAIT_"
#: The traits that the library asks, with their bits.
BITS = {
    name.removeprefix(_PREFIX).lower(): bit
    for bit, name in ffi.typeof("enum lt_trait").elements.items()
}


def test_the_library_and_the_tool_have_the_same_kinds() -> None:
    numbers = set(ffi.typeof("enum lt_kind").elements) - {
        lib.LT_KIND_NONE, lib.LT_KIND_END, lib.LT_KIND_SHARED,
    }  # fmt: skip
    assert set(KINDS) == numbers
    assert list(KINDS.values()) == list(Kind)
    assert {number: BY_NUMBER[number] for number in KINDS} == KINDS


@pytest.mark.parametrize("number", KINDS)
def test_the_library_has_the_traits_of_the_model(number: int) -> None:
    bits, traits = lib.lt_kind_traits(number), TRAITS[KINDS[number]]
    assert {name: bool(bits & bit) for name, bit in BITS.items()} == {
        name: getattr(traits, name) for name in BITS
    }


def test_a_number_without_a_kind_has_no_traits() -> None:
    assert BITS
    assert [lib.lt_kind_traits(number) for number in (0, lib.LT_KIND_END, 2**32 - 1)] == [0, 0, 0]


def test_numbers_of_kinds() -> None:
    assert numbers_of({Kind.SEM, Kind.COND}) == {lib.LT_KIND_SEM, lib.LT_KIND_COND}
    assert set(CONTENDING) == numbers_of(CONTENTION_KINDS)
