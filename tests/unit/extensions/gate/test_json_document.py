"""The result of a gate as JSON, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unit.builders.gate_results import (
    HOSTILE,
    LONGER,
    NOTHING,
    SAME,
    STEADY,
    UNCLEAR,
    WORSE,
    comparison,
    result,
)

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.gate import json_document
from locktop.collector.extensions.gate.model import GateResult


@pytest.mark.parametrize(("whole", "status"), [(SAME, 0), (WORSE, 1), (UNCLEAR, 2), (NOTHING, 3)])
def test_a_result_comes_back_from_its_file(whole: GateResult, status: int, tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_bytes(json_document.encode(whole))
    assert json_document.read(str(path)) == whole
    document = json.loads(path.read_bytes())
    assert (document["format"], document["status"]) == ("locktop.gate", status)


def test_a_hostile_name_is_clean_text_in_the_document(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_bytes(
        json_document.encode(result(comparison(STEADY, LONGER, HOSTILE), name=HOSTILE))
    )
    assert path.read_text().replace("\n", "").isprintable()
    whole = json_document.read(str(path))
    assert whole.comparisons[0].name.startswith("</testcase>]]><!--&amp; \"'`` ` | \\| \\ **b**")


def test_names_in_a_file_of_a_stranger_become_clean(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    data = json_document.encode(SAME).decode()
    path.write_text(data.replace("2026-11-21T", "\\u001b[2J").replace("g_lock", "a\\u009bb"))
    whole = json_document.read(str(path))
    assert (whole.taken_at, whole.comparisons[0].name) == ("?[2J09:59:00Z", "a?b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[" * 100_000,
        '{"format": "locktop.snapshot"}',
        '{"format": "locktop.gate", "version": "\x1b[2J"}',
        json_document.encode(SAME).decode().replace('"gates": true', '"gates": "\\u001b"'),
        json_document.encode(SAME).decode().replace("0.001,", "-0.001,"),
        json_document.encode(SAME).decode().replace("0.001,", "1e300,"),
    ],
)
def test_a_file_of_a_stranger_is_an_error_of_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_text(text)
    with pytest.raises(LocktopError, match="no result of `locktop gate`") as error:
        json_document.read(str(path))
    assert str(error.value).isprintable()
