"""`locktop whatif` on a program that starts threads again and again, and joins them."""

from __future__ import annotations

import json
from typing import Any

from support import tool
from support.targets import StartTarget, Target

#: A busy host may stop the replay from being like the recording. Then the command refuses.
TRIES = 8


def answer(target: Target, *options: str) -> dict[str, Any]:
    """Return the first answer that is no refusal."""
    for _ in range(TRIES):
        done = tool.run("whatif", "-p", target.pid, "-d", "2", "--format", "json", *options)
        assert done.returncode in (0, 3), done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        if not document["refusal"]:
            return document
    raise AssertionError(document)


def rounds_per_s(target: Target) -> float:
    target.go_on()
    first = target.truth()
    for _ in range(10):  # the program itself gives the time between the two lines
        tool.run("list")
    target.go_on()
    last = target.truth()
    return float((last["rounds"][0] - first["rounds"][0]) / (last["seconds"] - first["seconds"]))


def test_a_change_is_predicted_through_starts_and_joins(start_target: StartTarget) -> None:
    target = start_target("starts_and_joins", "4", "600")
    other = start_target("starts_and_joins", "4", "300")
    target.expect("ready")
    other.expect("ready")
    document = answer(target, "--hold", "mutex=0.55x")
    truth = rounds_per_s(other) / rounds_per_s(target)
    [found] = document["predictions"]
    assert truth / 1.35 < found["ratio"] < truth * 1.35
    assert found["ratio"] > 1.2
