"""Asks `locktop whatif`, and measures the change really made by the program's own counters."""

from __future__ import annotations

import json
from typing import Any

from support import tool
from support.targets import Target

#: A busy host may stop the replay from being like the recording. Then the command refuses.
_TRIES = 20
#: So many short commands run while a program counts.
_MEANWHILE = 20


def answer(*arguments: str | int) -> dict[str, Any]:
    """Return the document of the first answer of `locktop whatif` that is no refusal."""
    for _ in range(_TRIES):
        done = tool.run("whatif", *arguments, "--format", "json")
        assert done.returncode in (0, 3), done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert bool(document["refusal"]) == (done.returncode == 3)
        if not document["refusal"]:
            return document
    raise AssertionError(document)


def ratio_of_rounds(changed: Target, unchanged: Target) -> float:
    """Return the rounds a second of a changed program, as a multiple of the unchanged one's.

    Both programs run meanwhile, so a busy host slows both.
    """
    before = [_truth(one) for one in (changed, unchanged)]
    for _ in range(_MEANWHILE):  # each program itself gives the time between its two lines
        tool.run("list")
    after = [_truth(one) for one in (changed, unchanged)]
    rates = [
        (sum(last["rounds"]) - sum(first["rounds"])) / (last["seconds"] - first["seconds"])
        for first, last in zip(before, after, strict=True)
    ]
    return float(rates[0] / rates[1])


def _truth(target: Target) -> dict[str, Any]:
    target.go_on()
    return target.truth()
