"""The call tree and the butterfly as JSON."""

from __future__ import annotations

import pytest
from support.pages import flat, page
from unit.builders.made_profiles import COUNT, GET, LEAF, MIDDLE, REPORT, ROOT, MadeProfile

from locktop.collector.render.documents import call_tree_json
from locktop.collector.render.profiles.call_tree import Butterfly, Step
from locktop.collector.render.profiles.profile import Weight


@pytest.mark.parametrize(
    ("name", "middle", "weight", "idle", "step"),
    [
        ("tree-json", MIDDLE, COUNT, False, None),
        ("tree-idle-json", MIDDLE, REPORT, True, None),
        ("butterfly-json", MIDDLE, COUNT, False, GET),
        ("butterfly-leaf-json", LEAF, COUNT, True, GET),
    ],
)
def test_the_documents_of_a_call_tree(
    name: str, middle: Butterfly, weight: Weight, idle: bool, step: Step | None
) -> None:
    profile = MadeProfile(ROOT, middle, estimate=weight is REPORT)
    assert flat(call_tree_json.document(profile, weight, idle, step)) == page(name)


def test_nothing_is_no_share_of_nothing() -> None:
    profile = MadeProfile(ROOT._replace(value=0.0), LEAF)
    document = call_tree_json.document(profile, COUNT, True, GET)
    assert document["butterfly"]["share"] == 0.0
