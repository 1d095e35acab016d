"""Holders of Rust's mutexes, by the wakes of their waiters, against what the program measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget

_NS = 1e-9
#: Of all charges together: each is rounded to the unit of lt_lock.waits.
_ROUNDING_S = 1e-4


def lock_of_type(document: dict[str, Any], type_: str, function: str) -> dict[str, Any]:
    (lock,) = (
        lock for lock in document["locks"] if lock.get("type") == type_ and function in lock["name"]
    )
    return dict(lock)


def blame_by_tid(lock: dict[str, Any]) -> dict[int, float]:
    seconds: defaultdict[int, float] = defaultdict(float)
    for entry in lock["blame"]:
        seconds[entry["tid"]] += entry["wait_s"]
    return dict(seconds)


def lies_between(seconds: float, bounds: list[int]) -> bool:
    least_s, most_s = bounds[1] * _NS, bounds[2] * _NS
    return least_s - _ROUNDING_S <= seconds <= most_s + _ROUNDING_S


@pytest.mark.parametrize("flags", [("-O",), ()], ids=["optimised", "plain"])
def test_waits_for_a_rust_mutex_are_blamed_on_who_woke_the_waiters(
    flags: tuple[str, ...], start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers", flags=flags)
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = lock_of_type(document, "Rust Mutex", "rust_wakers::want")
    blame = blame_by_tid(lock)
    assert lies_between(blame[truth["long"][0]], truth["long"]), (blame, truth)
    assert lies_between(blame[truth["brief"][0]], truth["brief"]), (blame, truth)
    assert truth["third"][0] not in blame, "nobody waited while the third thread had it"
    charged = [entry for entry in lock["blame"] if entry["tid"]]
    functions = {document["sites"][entry["site"]]["function"] for entry in charged}
    assert functions == {"rust_wakers::hold_while_wanted"}
    assert lies_between(lock["hold_s"], truth["third"]), (lock["hold_s"], truth)
    assert lock["hold_timed"] == 10
    target.go_on()
    assert target.finish() == (0, [])


def test_who_wakes_a_condition_or_a_parked_thread_holds_nothing(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers")
    target.truth()
    document = tool.snapshot(target.pid)
    signals = [
        lock for lock in document["locks"] if lock.get("type") in ("Rust Condvar", "Rust park")
    ]
    assert {lock["type"] for lock in signals} == {"Rust Condvar", "Rust park"}
    for lock in signals:
        assert not lock.get("blame")
        assert lock["idle"]
        assert (lock["hold_s"], lock["hold_timed"]) == (0.0, 0)
    target.go_on()
    assert target.finish() == (0, [])


def test_a_thread_that_got_a_rust_mutex_last_probably_holds_it(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers", "kept")
    truth = target.truth()

    def has_probable_holder(document: dict[str, Any]) -> bool:
        return any(lock.get("holders_probable") for lock in document["locks"])

    document = tool.scan_until(target.pid, has_probable_holder, "a probable holder")
    (lock,) = (lock for lock in document["locks"] if lock.get("holders_probable"))
    assert lock["waiters"] == [truth["waiter"]]
    (holder,) = lock["holders_probable"]
    assert (holder["tid"], holder["evidence"]) == (truth["holder"], "waker")
    assert lock["holders"] == []
    text = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout
    assert "which got it last and has not released it" in " ".join(text.split())
    target.go_on()
    assert target.finish() == (0, [])
