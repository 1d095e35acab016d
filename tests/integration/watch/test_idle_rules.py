"""`locktop watch --on-wait` and `locktop check` use the idle rules."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import PATIENCE_S, StartTarget, Target
from support.watch import EAGER, line_with, rest_of, watching

OWN = ("--idle-matching", "accept_one", "--idle-matching", "!take_turn")
LONG = ("--on-wait", "50ms", "")
#: The locks of contended waits in one program: by the shipped rules, and by the options above.
SHIPPED_ALERTS = {"mutex g_accept_lock", "rwlock g_config_lock"}
OWN_ALERTS = {"cond g_turn", "rwlock g_config_lock"}
EACH, POOLS = 3, 6


def start_pools(start_target: StartTarget) -> Target:
    target = start_target("six_pools", str(EACH))
    target.expect("ready")

    def all_there(document: dict[str, Any]) -> bool:
        # A thread may wait for the mutex of a condition first.
        locks = {lock["id"]: lock["name"] for lock in document["locks"]}
        waits = [one["waiting_for"] for one in document["threads"] if one["waiting_for"]]
        return len(waits) == EACH * POOLS and all(locks[w["lock"]] != "g_mutex" for w in waits)

    tool.scan_until(target.pid, all_there, "all pools in their waits")
    return target


@pytest.mark.parametrize(("options", "wanted"), [((), SHIPPED_ALERTS), (OWN, OWN_ALERTS)])
def test_a_wait_raises_an_alert_if_the_rules_call_it_contended(
    options: tuple[str, ...], wanted: set[str], start_target: StartTarget
) -> None:
    target = start_pools(start_target)
    with watching(target.pid, *EAGER, *LONG, *options) as watch:
        alerts = "\n".join(line_with(watch, "wait: ") for _ in wanted)
        assert {name for name in SHIPPED_ALERTS | OWN_ALERTS if f" {name}," in alerts} == wanted
        target.kill()
        rest = rest_of(watch)
        assert not any("wait: " in line for line in rest), rest  # the other waits are idle
        assert watch.process.wait(PATIENCE_S) == 0


def test_watch_uses_the_users_file_and_names_an_error_in_it(
    start_target: StartTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "locktop" / "idle.rules"
    file.parent.mkdir()
    file.write_text("idle accept function=accept_one\nidle writer function=write_config\n")
    target = start_pools(start_target)
    with watching(target.pid, *EAGER, *LONG, "--idle-matching", "!take_turn") as watch:
        assert " cond g_turn," in line_with(watch, "wait: ")
        target.kill()
        rest = rest_of(watch)
        assert not any("wait: " in line for line in rest), rest
    file.write_text("busy accept\n")
    for command in ("watch", "check"):
        done = tool.run(command, "-p", os.getpid())
        assert (done.returncode, done.stdout) == (2, "")
        assert "'busy' is neither idle nor contended" in done.stderr


def test_check_counts_contended_waits_by_the_rules(start_target: StartTarget) -> None:
    target = start_pools(start_target)

    def waiting(*options: str) -> str:
        done = tool.run("check", "-p", target.pid, "--format", "line", *options)
        assert done.returncode == 0, done.stderr
        # A part about waits that have lasted for ten seconds may follow.
        (found,) = re.findall(r"\d+ waiting for a lock", done.stdout)
        return str(found)

    contended = waiting()
    assert waiting(*OWN) == contended, "the same number of other threads"
    assert waiting("--idle-matching", "accept_one") != contended
    assert json.loads(tool.run("check", "-p", target.pid, "--json", *OWN).stdout)["deadlocks"] == []
