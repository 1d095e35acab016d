"""The stages of a scan: both sources have each of them, in one order."""

from __future__ import annotations

import inspect

import pytest

from locktop.collector.sources.pipeline import CONCLUDE, OBSERVE, PROBE, Scan
from locktop.collector.sources.preload.scan import PreloadScan
from locktop.collector.sources.sampling.scan import SamplingScan

STAGES = (*OBSERVE, *PROBE, *CONCLUDE)


@pytest.mark.parametrize("scan", [PreloadScan, SamplingScan])
def test_each_stage_is_a_method_of_each_source(scan: type[Scan]) -> None:
    for stage in STAGES:
        method = getattr(scan, stage.method)
        assert list(inspect.signature(method).parameters) == ["self"], stage.method
        assert method.__doc__, stage.method


def test_each_stage_runs_once_and_has_a_reason_for_its_position() -> None:
    methods = [stage.method for stage in STAGES]
    assert len(set(methods)) == len(methods)
    assert all(stage.why for stage in STAGES)


def test_a_stage_that_needs_another_one_comes_after_it() -> None:
    order = {stage.method: at for at, stage in enumerate(STAGES)}
    for earlier, later in (
        ("read", "build_threads"),
        ("build_threads", "build_locks"),
        ("build_locks", "check_deadlocks"),
        ("add_stacks", "merge_python_stacks"),
        ("resolve_names", "classify_waits"),
        ("classify_waits", "find_semaphore_owners"),
        ("find_semaphore_owners", "probe_holders"),
        ("probe_holders", "find_patterns"),
    ):
        assert order[earlier] < order[later], (earlier, later)
