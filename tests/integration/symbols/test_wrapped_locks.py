"""Locks that a wrapper initialises have the name, and the class, of the wrapper's caller."""

from __future__ import annotations

import re

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.analysis import lock_classes
from locktop.collector.model import Confidence, Snapshot
from locktop.collector.sources.attach import attach

#: The programs, each with the functions that make the objects, and the number of objects.
MAKERS = {
    "wrapped_mutex_class": ("Cache::Cache", "Queue::Queue"),
    "wrapped_mutex_init": ("loop_new", "pool_new"),
}
OBJECTS = 8


def scan(target: Target, of_classes: bool = False) -> Snapshot:
    source = attach(target.pid, of_classes=of_classes)
    try:
        return source.scan(resolve=True)
    finally:
        source.close()


def classes_of(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of locks of each class by the function of its name."""
    found = lock_classes.find(snapshot.locks)
    return {maker(one.name): len(one.locks) for one in found if "made in" in one.name}


def maker(name: str) -> str:
    found = re.fullmatch(r"mutex made in (\S+) \(\w+\.cc?:\d+\)", name)
    assert found, name
    return found[1]


@pytest.mark.parametrize("program", MAKERS)
@pytest.mark.parametrize("flags", [("-O1",), ("-O0",)], ids="".join)
def test_a_lock_is_made_by_the_caller_of_the_wrapper(
    program: str, flags: tuple[str, ...], start_target: StartTarget
) -> None:
    target = start_target(program, "different", flags=flags)
    target.expect("ok")
    assert classes_of(scan(target)) == dict.fromkeys(MAKERS[program], OBJECTS)


def test_without_stacks_the_constructor_names_its_locks(start_target: StartTarget) -> None:
    target = start_target("wrapped_mutex_class", "different", level="counting")
    target.expect("ok")
    assert classes_of(scan(target)) == {"port::Mutex::Mutex": 2 * OBJECTS}


@pytest.mark.parametrize("program", MAKERS)
def test_orders_of_locks_of_one_wrapper_are_no_potential_deadlock(
    program: str, start_target: StartTarget
) -> None:
    target = start_target(program, "different")
    target.expect("ok")
    for of_classes in (False, True):
        snapshot = scan(target, of_classes)
        assert (snapshot.lock_order, snapshot.lock_order_unproven) == ((), 0)


@pytest.mark.parametrize("program", MAKERS)
def test_inverted_classes_are_reported_only_on_request(
    program: str, start_target: StartTarget
) -> None:
    target = start_target(program, "inverted")
    target.expect("ok")
    assert scan(target).lock_order == ()
    (cycle,) = scan(target, of_classes=True).lock_order
    assert cycle.confidence is Confidence.LOW
    assert {maker(name) for name in cycle.classes} == set(MAKERS[program])


def test_check_reports_inverted_classes_only_on_request(start_target: StartTarget) -> None:
    target = start_target("wrapped_mutex_class", "inverted")
    target.expect("ok")
    for option, is_reported in (("--potential", False), ("--potential=classes", True)):
        done = tool.run("check", "-p", target.pid, option)
        assert done.returncode == 0, done.stderr
        assert ("POTENTIAL DEADLOCKS" in done.stdout) == is_reported
        assert ("Queue::Queue" in done.stdout) == is_reported


def test_a_stripped_wrapper_names_its_locks_by_its_address(start_target: StartTarget) -> None:
    target = start_target("wrapped_mutex_class", "different", flags=("-s",))
    target.expect("ok")
    locks = [lock for lock in scan(target).locks if "made in" in lock.name]
    assert len({lock.name for lock in locks}) == 1, "the program has no names of callers"
    assert re.fullmatch(r"mutex made in wrapped_mutex_class-s\+0x[0-9a-f]+", locks[0].name)
