"""The file of a report: its policy, its parts, and names from a stranger."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from msgspec.structs import replace
from support.report_page import data_of, page_of, part_of
from unit.builders import blocking, scenarios

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.render.documents import snapshot_codec

_MARKUP = '"></script><script>alert(1)</script><img src=x onerror=alert(1)>@CELLS@ \x1b[31m'


class _Tags(HTMLParser):
    """Collects the tags, and the contents of script and style."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style"):
            self.contents.append((self.tags[-1][0], data))


def parsed(text: str) -> _Tags:
    tags = _Tags()
    tags.feed(text)
    return tags


def test_the_policy_allows_the_one_script_and_the_one_style() -> None:
    text = page_of(scenarios.normal())
    tags = parsed(text)
    policy = next(
        attributes["content"]
        for tag, attributes in tags.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    hashes = re.findall(r"(\w+)-src 'sha256-([^']+)'", policy)
    assert [name for name, _ in hashes] == ["script", "style"]
    style, script = re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", text, re.DOTALL)
    for (_, digest), content in zip(hashes, (script[1], style[0]), strict=True):
        assert base64.b64decode(digest) == hashlib.sha256(content.encode()).digest()


def test_the_file_names_no_other_file() -> None:
    for tag, attributes in parsed(page_of(scenarios.normal())).tags:
        assert "src" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert (attributes.get("href") or "#").startswith("#"), tag


def test_the_snapshot_is_that_of_locktop_snapshot() -> None:
    snapshot = Classifier().classify(scenarios.deadlock())
    document = snapshot_codec.encode(snapshot)
    assert data_of(page_of(scenarios.deadlock()))["snapshot"] == json.loads(document)


def test_names_from_a_stranger_are_in_the_data_alone() -> None:
    calm = scenarios.normal()
    threads = tuple(replace(thread, name=_MARKUP) for thread in calm.threads)
    locks = tuple(replace(lock, name=_MARKUP) for lock in calm.locks)
    stranger = replace(calm, host=_MARKUP, notes=(_MARKUP,), threads=threads, locks=locks)
    text = page_of(stranger)
    assert "alert(1)" not in text
    assert "alert(1)" in json.dumps(data_of(text))
    assert [tag for tag, _ in parsed(text).tags] == [tag for tag, _ in parsed(page_of(calm)).tags]


def test_a_snapshot_alone_has_no_cells() -> None:
    text = page_of(scenarios.normal())
    assert part_of(text, "cells") == b""
    assert data_of(text)["heat"] is None


def test_the_table_marks_a_holder_that_is_not_certain() -> None:
    for known, text in (
        ({"holders": (blocking.HOLDER,)}, "charger"),
        ({"holders_probable": blocking.PROBABLY}, "~charger"),
        ({"readers": 2}, "2 readers"),
        ({}, "?charger"),
    ):
        data = data_of(page_of(blocking.sampled(**known)))
        assert data["lock_holders"] == {str(blocking.INDEX): text}


def test_a_sampled_process_claims_no_records() -> None:
    measured = dict(data_of(page_of(blocking.sampled()))["measured"])
    assert measured["From the start"] == "no: samples show the present alone"
    assert measured["Lost records"] == "there are no records: samples miss short waits"
