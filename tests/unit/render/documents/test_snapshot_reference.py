"""The JSON Schema of snapshots, and the reference page made from the same types."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.documents import snapshot_reference
from locktop.collector.render.documents.snapshot_codec import document
from locktop.tui import cli

_OLD = Path(__file__).parent / "old_snapshots"
_PAGE = Path(__file__).resolve().parents[4] / "docs" / "snapshot.md"


@pytest.mark.parametrize("name", ["preload_deadlock_interval.json", "sampled_interval.json"])
def test_real_snapshots_follow_the_schema(name: str) -> None:
    jsonschema.validate(json.loads((_OLD / name).read_bytes()), snapshot_reference.schema())


@pytest.mark.parametrize(
    ("snapshot", "before"),
    [
        (scenarios.fleet(tick=3), scenarios.fleet()),
        (scenarios.deadlock(), None),
        (scenarios.orders(), None),
        (scenarios.empty(), None),
    ],
)
def test_each_snapshot_follows_the_schema(snapshot: Snapshot, before: Snapshot | None) -> None:
    whole = json.loads(json.dumps(document(snapshot, before)))
    jsonschema.validate(whole, snapshot_reference.schema())
    del whole["process"]["pid"]
    with pytest.raises(jsonschema.ValidationError, match="'pid' is a required property"):
        jsonschema.validate(whole, snapshot_reference.schema())


def test_the_reference_page_is_up_to_date() -> None:
    assert _PAGE.read_text() == snapshot_reference.markdown(), "run `make snapshot-reference`"


def test_each_key_has_a_meaning() -> None:
    objects = snapshot_reference.schema()["$defs"]
    missing = [
        f"{name}.{key}"
        for name, found in objects.items()
        for key, part in found.get("properties", {}).items()
        if not part.get("description")
    ]
    assert missing == []


def test_the_command_prints_the_schema_without_a_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["snapshot", "--schema"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == snapshot_reference.schema()
