"""The locks of the interpreter itself, among those of the program."""

from __future__ import annotations

import pytest
from support import tool
from support.pythons import PYTHONS, has_mutexes
from support.targets import Target, source_of

from locktop.collector.sources.launch import preload_environment


@pytest.mark.parametrize("python", PYTHONS)
def test_the_locks_of_the_interpreter_are_one_class(python: str) -> None:
    command = [python, str(source_of("python_threads_burn"))]
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        document = tool.scan_until(
            target.pid,
            lambda one: any("waits_for_lock" in lock["name"] for lock in one["locks"]),
            "the name of the program's lock",
        )
    own = {lock["id"]: lock["kind"] for lock in document["locks"] if "_PyRuntime" in lock["name"]}
    (found,) = [one for one in document["lock_classes"] if one["name"] == "Python runtime"]
    assert set(found["locks"]) == own.keys(), "each one is in the list of locks, too"
    assert {"mutex", "cond"} <= set(own.values())
    (others,) = [lock for lock in document["locks"] if "waits_for_lock" in lock["name"]]
    assert others["name"].startswith("Lock in ") or has_mutexes(python)
