"""The names of locks without a symbol: after the code that initialised the lock."""

from __future__ import annotations

import pytest
from support.targets import StartTarget

from locktop.collector.sources.attach import attach
from locktop.collector.symbols.resolver import Resolver


def test_a_lock_on_the_heap_has_the_name_of_its_init_site(start_target: StartTarget) -> None:
    target = start_target("heap_lock_init_sites")
    truth = target.truth()
    source = attach(target.pid)
    try:
        source.scan()
        snapshot = source.scan(resolve=True)
    finally:
        source.close()
    names = {lock.address: lock.name for lock in snapshot.locks}
    sites = {
        "connection": "made in connection_new",
        "factory": "made in main",
        "again": "made in renew",
        "copied": "in want",
    }
    for which, site in sites.items():
        address, line = truth[which]
        assert names[address] == f"mutex {site} (heap_lock_init_sites.c:{line})"


@pytest.mark.parametrize(
    "flags", [("-gdwarf-5",), ("-gdwarf-4",), ("-gdwarf-5", "-gz", "-O2", "-no-pie")], ids="".join
)
def test_a_lock_inside_of_a_variable_has_the_name_of_its_field(
    start_unprepared: StartTarget, flags: tuple[str, ...]
) -> None:
    target = start_unprepared("locks_in_structures", flags=flags)
    truth = target.truth()
    resolver = Resolver(target.pid)
    for address in truth:
        resolver.data(int(address, 16))
    assert resolver.wait()
    assert {a: resolver.data(int(a, 16)) for a in truth} == {
        address: f"locks_in_structures.cc: {expression}" for address, expression in truth.items()
    }
    resolver.close()
