"""The lines of the predictions: the screen names keys, not options of the command."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.predicted import FOUND

from locktop.collector.extensions.whatif.model import WhatIfRefusal
from locktop.tui.extensions.whatif.rows import answer_line
from locktop.tui.views.styled_line import line_text


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
