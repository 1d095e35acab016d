"""The report of a deadlock as JSON."""

from __future__ import annotations

import pytest
from support.pages import flat, page
from unit.builders import deadlock_reports

from locktop.collector.model import DeadlockReport
from locktop.collector.render.documents import deadlock_json


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("deadlock-json-ring", deadlock_reports.ring()),
        ("deadlock-json-abandoned", deadlock_reports.abandoned()),
    ],
)
def test_the_document_of_a_deadlock(name: str, found: DeadlockReport) -> None:
    assert flat(deadlock_json.document(found)) == page(name)
