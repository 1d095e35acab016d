"""The lint finds paths, links and identifiers that do not exist."""

from __future__ import annotations

import pytest
from lint.references import broken_links, missing_identifiers, missing_paths
from support.documents import ROOT


@pytest.mark.parametrize(
    "code",
    ["collector/no_such_module.py", "docs/nowhere/", "no_such.c", "native/src/*.pascal"],
)
def test_a_missing_path_is_found(code: str) -> None:
    assert [*missing_paths(f"Text.\n\nSee `{code}`.")] == [(3, f"no such file: {code}")]


def test_a_path_that_exists_passes() -> None:
    for code in (
        "collector/sanitize.py",
        "collector/model",
        "collector/model/",
        "sanitize.py",
        "model/kinds.py",
        "native/src/<name>.c",
        "themes/*.toml",
        "*.toml",
        "threading.py",
        "worker.c:25",
        "cc -c server.c",
    ):
        assert [*missing_paths(f"See `{code}`.")] == []


def test_a_broken_link_is_found() -> None:
    text = "# Here\n\n[a](guide.md) [b](gone.md) [c](guide.md#gone) [d](#here) [e](#gone)"
    text += " [f](https://example.com/gone.md) `[g](gone.md)`"
    assert [*broken_links(text, ROOT / "docs")] == [
        (3, "no such file: gone.md"),
        (3, "no such heading: guide.md#gone"),
        (3, "no such heading: #gone"),
    ]


def test_a_missing_identifier_is_found() -> None:
    text = "`wait_begin()`, `Snapshot`, `Snapshot.threads`, `LD_PRELOAD=x`, `wait_never_begins()`"
    text += ", `Snapshot.no_such_field`, `sanitize.py`"
    assert [*missing_identifiers(text)] == [
        (1, "no such identifier: wait_never_begins()"),
        (1, "no such identifier: Snapshot.no_such_field"),
    ]
