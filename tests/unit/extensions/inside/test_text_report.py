"""The functions inside a lock, as a page of text and as JSON."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import flat, page
from unit.builders import inside_samples, scenarios

from locktop.collector.extensions.inside import report_json, text_report
from locktop.collector.model import Snapshot

SAMPLED = inside_samples.with_samples(
    replace(scenarios.normal(), notes=("a note",)),
    1,
    {"takes_most": 790, "takes_some": 200, "at_the_limit": 5, "below_the_limit": 4, "rare": 1},
    lost=1,
)
SPARSE = inside_samples.with_samples(scenarios.normal(), 1, {})


@pytest.mark.parametrize(
    ("name", "snapshot", "number"),
    [("inside", SAMPLED, 0), ("inside-other-lock", SAMPLED, 1), ("inside-empty", SPARSE, 0)],
)
def test_the_page_of_a_lock(name: str, snapshot: Snapshot, number: int) -> None:
    lock = snapshot.locks[number]
    assert text_report.render(snapshot, lock) == page(name)
    assert flat(report_json.document(snapshot, lock)) == page(f"{name}-json")


def test_the_report_has_five_locks_with_eight_functions_each() -> None:
    made = scenarios.normal()
    for number in range(1, 7):
        samples = {f"f{function}": 100 - function + number for function in range(10)}
        made = inside_samples.with_samples(made, number, samples)
    lines = list(text_report.summary(made, 100))
    locks = [line.split()[1] for line in lines if "samples, held" in line]
    assert locks == ["thread", "pool_ready", "journal_mutex", "stats_mutex", "g_table_lock"]
    functions = [line.split()[-3] for line in lines if " at work.c:" in line]
    assert functions[:9] == ["holds_once", *(f"f{number}" for number in range(7)), "holds_once"]
    assert lines[-1] == "  and 1 more lock"
