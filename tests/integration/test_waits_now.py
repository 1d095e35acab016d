"""Who waits for what, read without a look: the same waits that a look shows."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.attach import attach
from locktop.collector.model import Kind, Snapshot
from locktop.collector.source import WaitNow


def told(snapshot: Snapshot) -> dict[int, tuple[int, Kind, int, bool]]:
    return {
        thread.tid: (wait.lock, wait.kind, wait.seq, bool(thread.holds))
        for thread in snapshot.threads
        if (wait := thread.waiting_for)
    }


def read(waits: dict[int, WaitNow]) -> dict[int, tuple[int, Kind, int, bool]]:
    return {tid: (one.lock, one.kind, one.seq, one.holds) for tid, one in waits.items()}


@pytest.mark.parametrize(("name", "arguments"), [("pools", ("5",)), ("ring3", ())])
def test_they_are_those_of_a_look(
    name: str, arguments: tuple[str, ...], start_target: StartTarget
) -> None:
    target = start_target(name, *arguments)
    target.expect("ready")
    if name == "ring3":
        target.go_on()
        target.truth()
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while True:  # until nothing changed meanwhile; then all stay where they are
            assert time.monotonic() < deadline
            before = told(source.look(resolve=True))
            seen = dict(source.waits() or {})
            after = source.look()
            if before == told(after) and len(before) == (30 if arguments else 3):
                break
        assert read(seen) == before
        idle = {one.tid: one.waiting_for.idle for one in after.threads if one.waiting_for}
        judged = {tid: one.idle for tid, one in seen.items()}
        assert judged == (idle if name == "pools" else dict.fromkeys(idle)), "a circle is no rule"
        for_s = {one.tid: one.waiting_for.for_s for one in after.threads if one.waiting_for}
        assert all(0 < one.for_s <= for_s[tid] for tid, one in seen.items())
        target.kill()
        target.process.wait()
        assert source.waits() is None
