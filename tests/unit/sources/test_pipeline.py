"""The stages of a scan: both sources have each of them, in one order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

import pytest

from locktop.collector.sources.pipeline import CONCLUDE, OBSERVE, PROBE, Scan
from locktop.collector.sources.preload.scan import PreloadScan
from locktop.collector.sources.sampling.scan import SamplingScan

STAGES = (*OBSERVE, *PROBE, *CONCLUDE)


class _Names:
    """Stands for a scan, and keeps the names of the methods that stages call."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.called.append(name)


def _methods() -> list[str]:
    names = _Names()
    for stage in STAGES:
        stage.run(cast(Scan, names))
    return names.called


@pytest.mark.parametrize("scan", [PreloadScan, SamplingScan])
def test_each_stage_is_a_method_of_each_source(scan: type[Scan]) -> None:
    for name in _methods():
        method = getattr(scan, name)
        assert list(inspect.signature(method).parameters) == ["self"], name
        assert inspect.getdoc(method), name


def test_each_stage_runs_once_and_has_a_reason_for_its_position() -> None:
    methods = _methods()
    assert len(set(methods)) == len(methods) == len(STAGES)
    assert all(stage.why for stage in STAGES)


def test_a_stage_that_needs_another_one_comes_after_it() -> None:
    order = {name: at for at, name in enumerate(_methods())}
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
