"""Asks `locktop whatif`, and measures the change really made by the program's own counters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from locktop.collector.extensions.whatif.model import WhatIfRefusal
from support import tool
from support.targets import Target

#: A busy host may stop the replay from being like the recording. Then the command refuses.
_TRIES = 20
_OF_BUSY_HOSTS = {WhatIfRefusal.PHASES, WhatIfRefusal.REPLAY, WhatIfRefusal.STARVED}
#: Runnable threads on each CPU from which such refusals are no surprise.
_MAX_LOAD = 10
#: So many short commands run while a program counts.
_MEANWHILE = 20


def answer(*arguments: str | int) -> dict[str, Any]:
    """Return the document of the first answer of `locktop whatif` that is no refusal.

    Where a far too busy host delays each wake, no replay is like the recording, however often the
    command tries. Then the refusals are right, and there is no answer to compare: the test skips.
    """
    refusals = set()
    for _ in range(_TRIES):
        done = tool.run("whatif", *arguments, "--format", "json")
        assert done.returncode in (0, 3), done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert bool(document["refusal"]) == (done.returncode == 3)
        if not document["refusal"]:
            return document
        refusals.add(WhatIfRefusal(document["refusal"]))
    load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    if refusals <= _OF_BUSY_HOSTS and load > _MAX_LOAD:
        pytest.skip(f"{load:.0f} runnable threads on each CPU: {', '.join(sorted(refusals))}")
    raise AssertionError(document)


def ratio_of_rounds(changed: Target, unchanged: Target) -> float:
    """Return the rounds a second of a changed program, as a multiple of the unchanged one's.

    Both programs run meanwhile, so a busy host slows both.
    """
    return _ratio(changed, unchanged, lambda target, truth: float(truth["seconds"]))


def ratio_of_rounds_by_cpu_time(changed: Target, unchanged: Target) -> float:
    """Return the same for a second of CPU time, for programs that need all CPUs.

    A busy host may give one of both several times the CPU time of the other one.
    """
    return _ratio(changed, unchanged, lambda target, _: _cpu_s(target))


def _ratio(
    changed: Target, unchanged: Target, seconds: Callable[[Target, dict[str, Any]], float]
) -> float:
    def state(target: Target) -> tuple[int, float]:
        target.go_on()
        truth = target.truth()
        return sum(truth["rounds"]), seconds(target, truth)

    targets = changed, unchanged
    before = [state(target) for target in targets]
    for _ in range(_MEANWHILE):  # each program itself gives the time between its two lines
        tool.run("list")
    after = [state(target) for target in targets]
    rates = [
        (last_rounds - rounds) / (last_s - begin_s)
        for (rounds, begin_s), (last_rounds, last_s) in zip(before, after, strict=True)
    ]
    return rates[0] / rates[1]


def _cpu_s(target: Target) -> float:
    times = psutil.Process(target.pid).cpu_times()
    return float(times.user + times.system)
