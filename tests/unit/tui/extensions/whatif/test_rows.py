"""The lines of the predictions: the screen names keys, not options of the command."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from unit.builders.predicted import FOUND, LOCK

from locktop.collector.extensions.whatif.model import WhatIfRefusal
from locktop.tui.extensions.whatif.rows import answer_line, prediction_columns
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.table import lay_out


@pytest.mark.parametrize("refusal", list(WhatIfRefusal))
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("stuck", ["", "worker waits for g_lock"])
def test_a_refusal_names_keys_and_no_options(
    refusal: WhatIfRefusal, is_recorded: bool, stuck: str
) -> None:
    refused = replace(FOUND, refusal=refusal, predictions=(), is_recorded=is_recorded, stuck=stuck)
    text = line_text(answer_line(refused))
    assert f"No prediction ({refusal}): " in text
    assert "--" not in text
    assert "locktop" not in text.replace("before locktop could read", "")


def test_at_80_columns_a_change_says_what_happens_to_which_lock() -> None:
    name = "lock_rounds.cc: shards<std::string>[].mutexes[1]"
    table = lay_out(prediction_columns(FOUND.predictions, {LOCK.id: name}), 80)
    rows = [line_text(table.line(prediction)) for prediction in FOUND.predictions]
    assert re.search(r"  \+105 % lock_rounds.cc\S+mutexes\[1\]: hold half as long $", rows[1])
    assert rows[2].rstrip().endswith("  -5 % worker: 4 threads")
    assert all(len(row) <= 80 for row in rows)
    heading = line_text(table.heading())
    assert heading.split() == ["GAIN", "LIKELY", "RANGE", "AT", "MOST", "CHANGE"]
