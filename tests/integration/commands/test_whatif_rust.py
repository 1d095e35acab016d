"""Predictions of `locktop whatif` for a Rust Mutex, of which only holds after a wait are seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from support import tool
from support.targets import PATIENCE_S, StartTarget
from support.whatif import answer

#: Threads, the hold and the time between two holds.
HOT, RARE = ("8", "s2000", "s2000"), ("2", "s1000", "s~20000")


def test_a_shorter_hold_of_a_hot_rust_mutex_is_predicted_with_a_note(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_rounds", *HOT)
    target.expect("ready")
    document = answer("-p", target.pid, "-d", "3", "--hold", "Rust Mutex=0.5x")
    [prediction] = document["predictions"]
    assert prediction["low"] < 2 < 1.2 * prediction["high"]
    [note] = document["notes"]
    assert "rust_rounds::update" in note
    assert "holds that began without a wait are not seen" in note


def test_a_rust_mutex_that_is_mostly_free_is_refused(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_rounds", *RARE)
    target.expect("ready")
    options = ("-d", "3", "--hold", "Rust Mutex=0.5x", "--format", "json")
    deadline = time.monotonic() + PATIENCE_S
    while "no lock is contended" in (done := tool.run("whatif", "-p", target.pid, *options)).stderr:
        assert time.monotonic() < deadline, "two threads meet at the lock"
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert not document["predictions"]
    if document["refusal"] != "few rounds":
        assert {each["reason"] for each in document["refused"]} == {"unrecorded holds"}
