"""A call tree as a report of Visual Studio's profiler."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders.made_profiles import COUNT, LOCK, MIDDLE, ROOT, MadeProfile

from locktop.collector.render.documents import vsperf_csv
from locktop.collector.render.profiles.call_tree import SourceLine
from locktop.collector.render.profiles.profile import SNAPSHOT_WEIGHTS, Weight

FUNCTION = replace(MIDDLE, location=SourceLine("/src/a.c", 7))
OF_LOCK = replace(MIDDLE, step=LOCK._replace(number=17))


@pytest.mark.parametrize(
    ("name", "profile", "weight", "idle"),
    [
        ("csv-function", MadeProfile(ROOT, FUNCTION), COUNT, False),
        ("csv-function-idle", MadeProfile(ROOT, FUNCTION), COUNT, True),
        ("csv-lock", MadeProfile(ROOT, OF_LOCK), SNAPSHOT_WEIGHTS[0], False),
        ("csv-empty", MadeProfile(ROOT, replace(MIDDLE, value=0.0)), COUNT, False),
    ],
)
def test_the_rows_of_a_report(name: str, profile: MadeProfile, weight: Weight, idle: bool) -> None:
    assert vsperf_csv.render(profile, weight, idle).replace("\r\n", "\n") == page(name)
