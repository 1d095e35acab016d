"""The lock that a user names."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Lock
from locktop.collector.render.words.named_lock import lock_named

LOCKS = scenarios.normal().locks
OLD = replace(LOCKS[0], id=99, destroyed=True)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("1", 1),
        (hex(LOCKS[0].address), 1),
        (hex(LOCKS[0].address).upper().replace("0X", "0x"), 1),
        ("g_cache_lock", 1),
        ("cache", 1),
        ("stats", 3),
    ],
)
def test_a_lock_has_an_id_an_address_and_a_name(name: str, id_: int) -> None:
    assert lock_named(LOCKS, name).id == id_


def test_an_address_is_that_of_the_living_lock() -> None:
    assert lock_named((OLD, *LOCKS), hex(OLD.address)) is LOCKS[0]


def numbered(count: int, contended: int = 1) -> list[Lock]:
    return [records.lock(n, f"g_{n:02}", contended=contended) for n in range(1, 1 + count)]


EIGHT = ", ".join(f"g_{n:02} (id {n})" for n in range(1, 9))
ONE_OF_THEM = "an id or an address names one"


@pytest.mark.parametrize(
    ("locks", "name", "error"),
    [
        (LOCKS, "none", "there is no lock 'none'; contended locks: g_cache_lock (id 1),"
         " g_table_lock (id 2), stats_mutex (id 3)"),
        (numbered(8), "99", f"there is no lock '99'; contended locks: {EIGHT}"),
        (numbered(9), "99", f"there is no lock '99'; contended locks: {EIGHT} and 1 more"),
        (numbered(2, 0), "0xzz", "there is no lock '0xzz'; no lock is contended"),
        (numbered(2), "g_", "2 locks are called like 'g_': g_01 (id 1), g_02 (id 2);"
         f" {ONE_OF_THEM}"),
        (numbered(9), "g_", f"9 locks are called like 'g_': {EIGHT} and 1 more; {ONE_OF_THEM}"),
        ((LOCKS[0], OLD), "g_cache_lock", "2 locks are called like 'g_cache_lock': g_cache_lock"
         f" (id 1), g_cache_lock (id 99); {ONE_OF_THEM}"),
    ],
)  # fmt: skip
def test_a_name_of_no_lock_or_of_several_is_an_error(
    locks: tuple[Lock, ...], name: str, error: str
) -> None:
    with pytest.raises(LocktopError, match=f"^{re.escape(error)}$"):
        lock_named(locks, name)
