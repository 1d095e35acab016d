"""Locks that are held for a moment: the waits for them are counted one by one."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool
from support.targets import Compiler, StartTarget

from locktop.collector.sources.launch import preload_environment

LOCKS = ("g_mutex", "g_recursive", "g_rwlock", "g_spin")


@pytest.mark.parametrize("level", ["contended", "all"])
def test_each_brief_wait_is_counted(
    level: str, start_target: StartTarget, compiler: Compiler
) -> None:
    """A library behind this one sees each try, and so knows which acquisitions had to wait."""
    beside = compiler.program("counts_failed_tries", "-shared", "-fPIC")
    preload = f"{preload_environment()['LD_PRELOAD']}:{beside}"
    target = start_target("brief_fights", level=level, environment={"LD_PRELOAD": preload})
    truth = target.truth()
    while_alive = tool.snapshot(target.pid)
    target.go_on()
    target.expect("joined")
    after = tool.snapshot(target.pid)
    for document in (while_alive, after):
        locks = [tool.lock_named(document, name) for name in LOCKS]
        assert [lock["acquisitions"] for lock in locks] == truth["taken"]
        assert [lock["contended"] for lock in locks[2:]] == truth["contended"]
        assert min(truth["contended"]) >= 1000
        for lock in locks:
            assert_stacks_add_up(document, lock)
            assert_no_holder_is_charged_too_much(lock)
    by_thread = sum(one["contended"] for one in while_alive["threads"])
    assert by_thread == sum(tool.lock_named(while_alive, name)["contended"] for name in LOCKS)


def assert_stacks_add_up(document: dict[str, Any], lock: dict[str, Any]) -> None:
    assert sum(one["count"] for one in lock["wait_stacks"]) == lock["contended"]
    waited = sum(one["wait_s"] for one in lock["wait_stacks"])
    assert waited == pytest.approx(lock["wait_s"], rel=1e-6)
    for one in lock["wait_stacks"]:
        assert tool.functions(document, one["stack"])[0] == "fight"


def assert_no_holder_is_charged_too_much(lock: dict[str, Any]) -> None:
    charged = sum(one["wait_s"] for one in lock["blame"] if int(one["site"], 16))
    assert charged <= lock["wait_s"] * (1 + 1e-9)
