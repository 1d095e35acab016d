"""Frames of signal handlers, which have no symbol in any C library."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.sources.attach import attach
from locktop.collector.symbols.kernel_code import SIGNAL_FRAME


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_the_frame_below_a_signal_handler_has_a_name(
    start: str, request: pytest.FixtureRequest
) -> None:
    start_it: StartTarget = request.getfixturevalue(start)
    target = start_it("lock_wanted_in_handler")
    target.expect("ready")
    deadline = time.monotonic() + PATIENCE_S
    functions: list[str] = []
    with closing(attach(target.pid)) as source:
        while "on_signal" not in functions:
            assert time.monotonic() < deadline, functions
            seen = source.scan(resolve=True)
            waits = [one.waiting_for for one in seen.threads if one.tid != target.pid]
            stacks = [seen.stacks.get(wait.stack, ()) for wait in waits if wait is not None]
            functions = [frame.function for frames in stacks for frame in frames]
    assert functions[functions.index("on_signal") + 1] == SIGNAL_FRAME
    assert functions.count(SIGNAL_FRAME) == 1
    assert "interrupted" in functions
