"""The formats of results: the content, the suffix, and what the help says of them."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from unit.builders import inside_samples, scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.formats import INSIDE_FORMATS
from locktop.collector.model.diagnosis import Diagnosis, full
from locktop.collector.render import formats
from locktop.collector.render.formats import (
    CALL_TREE_FORMATS,
    DIAGNOSIS_FORMATS,
    FINDING_FORMATS,
    SNAPSHOT_FORMATS,
    OutputFormat,
    ResultFormats,
)
from locktop.collector.render.profiles.profile import SnapshotProfile

#: All declarations, by name.
DECLARED = {
    name: value for name, value in vars(formats).items() if isinstance(value, ResultFormats)
}


def _format(name: str, about: str = "") -> OutputFormat[[str]]:
    return OutputFormat(name, f".{name}", lambda text: f"{name} {text}".encode(), about=about)


def test_the_first_format_is_the_default() -> None:
    two = ResultFormats(_format("plain"), _format("rich"))
    assert two.names == ("plain", "rich")
    assert two.default == "plain"
    assert two["rich"].suffix == ".rich"
    assert two.render("rich", "x") == b"rich x"
    with pytest.raises(KeyError):
        two["other"]


def test_no_later_format_replaces_one_with_its_name() -> None:
    first, second = _format("plain"), _format("plain")
    formats_of_two = ResultFormats(first, second)
    assert formats_of_two.names == ("plain",)
    assert formats_of_two["plain"] is first


@pytest.mark.parametrize(
    ("abouts", "help_text"),
    [
        (["", ""], "default f0"),
        (["a (the default)", "b"], "a (the default) or b"),
        (["a", "b", "c: more"], "a, b, or c: more"),
        (["a", "b", "c: or d", ""], "a, b, or c: or d"),
    ],
)
def test_the_help_tells_of_each_format(abouts: list[str], help_text: str) -> None:
    made = ResultFormats(*(_format(f"f{index}", one) for index, one in enumerate(abouts)))
    assert made.help == help_text


@pytest.mark.parametrize("name", DECLARED)
def test_programs_read_all_formats_but_text(name: str) -> None:
    found: ResultFormats[Any] = DECLARED[name]
    assert [one for one in found.names if found[one].is_prose] == ["text"]
    assert [one for one in found.names if found[one].is_binary] == (
        ["msgpack"] if found is SNAPSHOT_FORMATS else []
    )


def test_suffixes() -> None:
    suffixes = {one: found[one].suffix for found in DECLARED.values() for one in found.names}
    assert suffixes == {
        "json": ".json", "msgpack": ".msgpack", "text": ".txt", "line": ".txt", "dot": ".dot",
        "mermaid": ".mmd", "csv": ".csv", "html": ".html",
    }  # fmt: skip


def test_a_snapshot_is_the_same_in_json_and_msgpack() -> None:
    snapshot = scenarios.normal()
    packed = msgpack.unpackb(SNAPSHOT_FORMATS.render("msgpack", snapshot), strict_map_key=False)
    assert packed["format"] == "locktop.snapshot"
    assert json.loads(SNAPSHOT_FORMATS.render("json", snapshot)) == packed


def test_the_finding_in_each_format() -> None:
    made = {
        name: FINDING_FORMATS.render(name, scenarios.deadlock()) for name in FINDING_FORMATS.names
    }
    text, line = made["text"].decode(), made["line"].decode()
    assert line.count("\n") == 1
    assert text.startswith(line)
    assert len(text) > len(line)
    assert json.loads(made["json"])["format"] == "locktop.check"
    assert made["dot"].startswith(b"digraph")
    assert made["mermaid"].startswith(b"flowchart")


def test_a_report_of_callers_has_all_functions() -> None:
    profile = SnapshotProfile(scenarios.normal())
    weight = profile.weights[0]
    assert CALL_TREE_FORMATS.render("csv", profile, weight, False, None).startswith(b"Type,")
    step = next(iter(profile.butterflies(weight.name)))
    with pytest.raises(LocktopError, match="all functions"):
        CALL_TREE_FORMATS.render("csv", profile, weight, False, step)


def test_a_call_tree_and_a_butterfly_in_each_format() -> None:
    profile = SnapshotProfile(scenarios.normal())
    weight = profile.weights[0]
    step = next(one for one in profile.butterflies(weight.name) if one.name == "serve_one")
    tree = CALL_TREE_FORMATS.render("text", profile, weight, False, None).decode()
    butterfly = CALL_TREE_FORMATS.render("text", profile, weight, False, step).decode()
    assert "  + serve_get at serve.c:130\n" in tree
    assert "  > serve_one at serve.c:77\n" in butterfly
    assert "nodes" in json.loads(CALL_TREE_FORMATS.render("json", profile, weight, False, None))
    assert "butterfly" in json.loads(CALL_TREE_FORMATS.render("json", profile, weight, False, step))


def test_the_functions_inside_a_lock_and_a_diagnosis_in_each_format() -> None:
    sampled = inside_samples.with_samples(scenarios.normal(), 1)
    text = INSIDE_FORMATS.render("text", sampled, sampled.locks[0])
    assert text.startswith(b"locktop callers --inside: store 4711")
    document = json.loads(INSIDE_FORMATS.render("json", sampled, sampled.locks[0]))
    assert document["format"] == "locktop.inside"
    diagnosis = Diagnosis((full("kernel", "6.1"),), 7, "app")
    assert DIAGNOSIS_FORMATS.render("text", diagnosis).startswith(b"All of process 7")
    assert json.loads(DIAGNOSIS_FORMATS.render("json", diagnosis))["pid"] == 7
