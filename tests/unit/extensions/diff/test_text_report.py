"""A comparison in words: the sentences, the page and the JSON."""

from __future__ import annotations

import json

import pytest
from unit.builders.compared import MUTEX, figures, side

from locktop.collector.extensions.diff import sentences, text_report
from locktop.collector.extensions.diff.compare import compare
from locktop.collector.extensions.diff.formats import DIFF_FORMATS
from locktop.collector.extensions.diff.intervals import Interval
from locktop.collector.extensions.diff.model import (
    FigureChange,
    LockMeasure,
    MatchKey,
    SideComparison,
)
from locktop.collector.model import Kind

UNEVEN = (1.0, 1.1, 0.9, 1.05, 0.95, 1.2, 0.8, 1.0, 1.1, 0.9)
OTHER = MatchKey(Kind.RWLOCK, "index")
HOSTILE = "\x1b]0;x\x07\u202e<script>\n\x9b2J [bold]"


def waits(
    before: float, after: float, measure: LockMeasure = LockMeasure.WAIT, **more: object
) -> FigureChange:
    return FigureChange(measure, before, after, is_large=True, **more)  # type: ignore[arg-type]


def slower(marks: int = 0) -> SideComparison:
    """Three times as much waiting for one of two locks, and a new lock."""
    count = {"done #": marks} if marks else {}
    before = [{MUTEX: figures(0.13 * share), OTHER: figures(0.01)} for share in UNEVEN]
    new = MatchKey(Kind.MUTEX, "fresh_mu")
    after = [
        {MUTEX: figures(0.42 * share), OTHER: figures(0.01), new: figures(0.02)} for share in UNEVEN
    ]
    return compare(side(before, count), side(after, count))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            waits(0.13, 0.42, interval=Interval(2.2, 4.4, (20, 20))),
            "mu: waits 3.2 times as long: 0.42 s/s, was 0.13 s/s (2.2 to 4.4 times)",
        ),
        (waits(0.013, 0.0042), "mu: waits 0.32 times as long: 4.20 ms/s, was 13.0 ms/s"),
        (waits(0.0, 12.34), "mu: waits 12.3 s/s, was 0"),
        (waits(0.5, 0.0), "mu: waits 0, was 0.50 s/s"),
        (
            waits(10.0, 1500.0, LockMeasure.ACQUISITIONS),
            "mu: is taken 150 times as often: 1.50k/s, was 10/s",
        ),
        (
            waits(0.001, 0.0012, LockMeasure.MEAN_HOLD),
            "mu: a hold takes 1.20 times as long: 1.20 ms, was 1.00 ms",
        ),
        (
            waits(0.001, 0.002, is_per_transaction=True),
            "mu: per transaction, waits 2.0 times as long: 2.00 ms, was 1.00 ms",
        ),
        (
            waits(1.0, 3.0, LockMeasure.ACQUISITIONS, is_per_transaction=True),
            "mu: per transaction, is taken 3.0 times as often: 3, was 1",
        ),
    ],
)
def test_a_change_as_a_sentence(change: FigureChange, says: str) -> None:
    assert sentences.sentence("mu", change) == says


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.001, "<0.01"),
        (0.321, "0.32"),
        (1.0, "1.00"),
        (1.996, "2.0"),
        (9.94, "9.9"),
        (9.96, "10"),
        (1240.0, "1,240"),
        (2e6, ">1M"),
    ],
)
def test_a_ratio_has_two_or_three_digits(ratio: float, text: str) -> None:
    assert sentences.times(ratio) == text


def test_the_page_begins_with_what_changed_most() -> None:
    page = text_report.render(slower(marks=20)).splitlines()
    assert page[0].startswith("cache_mu: waits 3.2 times as long: 0.42 s/s, was 0.13 s/s (2.")
    assert page[1] == "new: fresh_mu"
    assert "A  x.rec: store (pid 4711), 10.0 s in 10 pieces" in page
    titles = page.index("                              A          B   times      95 % interval")
    assert page[titles + 1] == "ALL LOCKS"
    assert "cache_mu (mutex)" in page
    assert "  per transaction, done #" in page
    assert "NEW IN B" in page
    assert "  fresh_mu (mutex): waits 20.0 ms/s, taken 100/s, held 0.10 s/s" in page
    assert not any("index" in line for line in page)
    assert max(map(len, page)) <= 80


def test_nothing_changed() -> None:
    comparison = compare(slower().before, slower().before)
    page = text_report.render(comparison)
    assert page.startswith("Nothing changed.\n\nA  x.rec")
    assert "times" not in page
    document = json.loads(DIFF_FORMATS.render("json", comparison))
    assert (document["changed"], document["sentences"]) == (False, ["Nothing changed."])
    assert [lock["name"] for lock in document["locks"]] == ["cache_mu", "index"]


def test_json_has_all_figures() -> None:
    document = json.loads(DIFF_FORMATS.render("json", slower(marks=20)))
    assert (document["format"], document["version"]) == ("locktop.diff", 1)
    assert document["a"] == {
        "title": "x.rec",
        "pid": 4711,
        "comm": "store",
        "duration_s": 10.0,
        "pieces": 10,
        "sampled": False,
    }
    assert document["transaction"] == "done #"
    lock = document["locks"][0]
    assert (lock["name"], lock["kind"], lock["count"]) == ("cache_mu", "mutex", {"a": 1, "b": 1})
    change = lock["changes"][0]
    assert (change["measure"], change["per"], change["changed"]) == ("wait_s", "second", True)
    assert change["ratio"] == pytest.approx(0.42 / 0.13)
    assert change["interval"][0] < change["ratio"] < change["interval"][1]
    assert change["pieces"] == {"a": 10, "b": 10}
    assert {change["per"] for change in lock["changes"]} == {"second", "use", "transaction"}
    assert [lock["name"] for lock in document["new"]] == ["fresh_mu"]
    assert document["gone"] == []


def test_notes_say_what_limits_the_comparison() -> None:
    one = compare(side([{MUTEX: figures(0.1)}]), side([{MUTEX: figures(0.9)}]))
    assert any("fewer than 8 independent pieces" in note for note in sentences.notes(one))
    mixed = compare(
        side([{MUTEX: figures(0.1)}], is_sampled=True, marks_lost=True, notes=("no names",)),
        side([{MUTEX: figures(0.1)}]),
    )
    assert list(sentences.notes(mixed)) == [
        "one side was sampled without the library: waits alone can be compared",
        "A: marks were lost, so there are no figures per transaction",
        "A: no names",
    ]


def test_many_locks_are_cut_in_the_text_alone() -> None:
    keys = [MatchKey(Kind.MUTEX, letter * 2) for letter in "abcdefghijklmnopqrstuvwxyz"]
    comparison = compare(
        side([{key: figures(0.1) for key in keys}]), side([{key: figures(0.5) for key in keys}])
    )
    assert "  6 more; --format json has all" in text_report.render(comparison).splitlines()
    assert len(json.loads(DIFF_FORMATS.render("json", comparison))["locks"]) == 26


@pytest.mark.parametrize("form", DIFF_FORMATS.names)
def test_hostile_names_are_plain_text(form: str) -> None:
    lock, fresh = MatchKey(Kind.MUTEX, HOSTILE), MatchKey(Kind.MUTEX, f"fresh {HOSTILE}")
    sides = [
        side(
            [piece],
            {f"done {HOSTILE}": 30},
            title=f"x{HOSTILE}",
            comm=HOSTILE,
            notes=(HOSTILE,),
        )
        for piece in ({lock: figures(0.1)}, {lock: figures(0.9), fresh: figures(0.5)})
    ]
    text = DIFF_FORMATS.render(form, compare(*sides)).decode()
    assert "<script>" in text
    assert "done" in text
    assert all(character.isprintable() or character == "\n" for character in text)
