"""The rules of Pyroscope and Parca for a pprof profile that they store.

Pyroscope: pkg/validation/validate.go, pkg/pprof/pprof.go and the limits of pkg/validation/limits.go
of github.com/grafana/pyroscope, version 2 of August 2026. Parca: pkg/normalizer/validate.go and
pkg/profilestore/profilecolumnstore.go of github.com/parca-dev/parca, of July 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PROMETHEUS_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
#: The defaults of Pyroscope: bytes of a label, frames of a stack, samples and bytes of a profile.
_MAX_LABEL, _MAX_DEPTH, _MAX_SAMPLES, _MAX_BYTES = 2048, 1000, 16_000, 4 << 20


def check(profile: Any) -> None:
    """Assert that both take a profile as it is: they refuse nothing and drop nothing."""
    _check_tables(profile)
    _check_types(profile)
    for sample in profile.sample:
        _check_sample(profile, sample)
    assert len(profile.sample) <= _MAX_SAMPLES
    assert profile.ByteSize() <= _MAX_BYTES


def _check_tables(profile: Any) -> None:
    strings = profile.string_table
    assert strings[0] == ""
    assert len(set(strings)) == len(strings)
    assert all(0 <= number < len(strings) for number in _string_numbers(profile))
    for table in (profile.mapping, profile.function, profile.location):
        assert [entry.id for entry in table] == list(range(1, len(table) + 1))
    for location in profile.location:
        assert location.mapping_id <= len(profile.mapping)
        assert location.line  # without lines and an address, Pyroscope drops the location
        assert all(1 <= line.function_id <= len(profile.function) for line in location.line)


def _string_numbers(profile: Any) -> Iterator[int]:
    for mapping in profile.mapping:
        yield from (mapping.filename, mapping.build_id)
    for function in profile.function:
        yield from (function.name, function.system_name, function.filename)
    for sample in profile.sample:
        for label in sample.label:
            yield from (label.key, label.str)


def _check_types(profile: Any) -> None:
    types = [*profile.sample_type, profile.period_type]
    words = [(profile.string_table[entry.type], profile.string_table[entry.unit])
             for entry in types]  # fmt: skip
    # Pyroscope makes the metric "mutex" of these, Parca a name of Prometheus.
    assert words == [
        ("contentions", "count"), ("delay", "nanoseconds"), ("contentions", "count"),
    ]  # fmt: skip
    for name, unit in words[:2]:
        assert "-" not in name
        assert _PROMETHEUS_NAME.fullmatch(":".join(["mutex", name, unit, *words[2]]))
    assert profile.string_table[profile.default_sample_type] == "delay"
    assert profile.period == 1
    assert profile.time_nanos > 0
    assert profile.duration_nanos >= 0


def _check_sample(profile: Any, sample: Any) -> None:
    assert len(sample.value) == len(profile.sample_type)
    assert min(sample.value) >= 0
    assert any(sample.value)
    assert 1 <= len(sample.location_id) <= _MAX_DEPTH
    assert all(1 <= number <= len(profile.location) for number in sample.location_id)
    names = [profile.string_table[label.key] for label in sample.label]
    assert all(_LABEL_NAME.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)
    for label in sample.label:
        assert 1 <= len(profile.string_table[label.str].encode()) <= _MAX_LABEL
