"""The figures of a lock are declared once: all that shows figures has each of them."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Kind, Lock, LockClass
from locktop.collector.model.lock_figures import (
    LOCK_FIGURES,
    LockFigures,
    figure_columns,
    growth,
    sums,
)
from locktop.collector.render.documents.snapshot_intervals import class_interval, lock_interval
from locktop.collector.render.documents.snapshot_locks import (
    LockClassEntry,
    LockEntry,
    LockInterval,
)
from locktop.collector.render.documents.snapshot_reference import schema

BEFORE = replace(records.lock(1, "m"), **dict.fromkeys(LOCK_FIGURES, 2))
NOW = replace(BEFORE, **dict.fromkeys(LOCK_FIGURES, 5))


@pytest.mark.parametrize("kind", [Lock, LockEntry, LockClassEntry, LockInterval])
def test_all_that_shows_a_lock_has_each_figure(kind: type[msgspec.Struct]) -> None:
    assert set(LOCK_FIGURES) <= set(kind.__struct_fields__)


def test_the_names_of_a_document_stand_before_its_figures() -> None:
    assert LockEntry.__struct_fields__[:3] == ("id", "kind", "name")
    assert LockClassEntry.__struct_fields__[:2] == ("name", "kind")


def test_each_figure_has_a_meaning_in_the_schema() -> None:
    keys = schema()["$defs"]["LockInterval"]["properties"]
    assert all(keys[name]["description"] for name in LOCK_FIGURES)


def test_the_sums_of_a_class_have_each_figure() -> None:
    both = LockClass("m", Kind.MUTEX, (1, 2), (BEFORE, replace(NOW, id=2)))
    assert {name: getattr(both, name) for name in LOCK_FIGURES} == dict.fromkeys(LOCK_FIGURES, 7)
    assert sums(both.members) == dict.fromkeys(LOCK_FIGURES, 7)
    with pytest.raises(AttributeError):
        _ = both.no_such_figure


def test_a_sum_without_a_part_is_not_measured() -> None:
    part = replace(NOW, hold_s=None)
    assert {name for name, value in sums([BEFORE, part]).items() if value is None} == {"hold_s"}


def test_an_interval_has_the_growth_of_each_figure() -> None:
    assert growth(NOW, BEFORE) == dict.fromkeys(LOCK_FIGURES, 3)
    assert growth(NOW, None) == dict.fromkeys(LOCK_FIGURES, 5)
    assert growth(BEFORE, NOW) == dict.fromkeys(LOCK_FIGURES, 0)
    for interval in (lock_interval(NOW, BEFORE), class_interval([NOW], {1: BEFORE})):
        grown = {name: getattr(interval, name) for name in LOCK_FIGURES}
        assert grown == {**dict.fromkeys(LOCK_FIGURES, 3), "idle_s": 3.0}


def test_a_figure_without_one_scan_is_not_measured() -> None:
    assert growth(NOW, replace(BEFORE, signals=None))["signals"] is None


def test_a_declared_column_has_all_that_the_list_needs() -> None:
    for name, column, is_time in figure_columns():
        assert name in LockFigures.__struct_fields__
        assert is_time == name.endswith("_s")
        assert len(column.title) <= column.width
        assert column.help
        assert column.from_width > 80
