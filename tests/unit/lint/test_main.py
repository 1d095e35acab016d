"""The lint reads all documents and all sources: a root that it lost would pass unread."""

from __future__ import annotations

from pathlib import Path

from lint.__main__ import CHANGELOG, INTERNALS, ROOTS, TARGETS
from support.documents import ROOT, documents
from support.source_texts import PYTHON, C, source_files

#: Fewer files than any root has by far.
_LEAST = {"collector": 200, "tui": 100, "bench": 5, "native": 100, "tests": 500}


def test_each_root_has_its_files() -> None:
    assert set(_LEAST) == set(ROOTS)
    for root, least in _LEAST.items():
        assert len(source_files([root])) >= least
    languages = {path.suffix for path in source_files(ROOTS)}
    assert languages & PYTHON
    assert languages >= C - {".def"}


def test_the_documents_are_read() -> None:
    read = set(documents())
    assert {Path("README.md"), Path("CONTRIBUTING.md"), CHANGELOG} <= read
    assert (ROOT / TARGETS).exists()
    for directory in (Path("docs"), INTERNALS):
        assert {path.relative_to(ROOT) for path in (ROOT / directory).rglob("*.md")} <= read
