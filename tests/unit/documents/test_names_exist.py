"""Every path, link and identifier that a document names exists in the repository."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from pathlib import Path

import pytest
from support.documents import ROOT, anchors, documents, inline_code, links

TOP = ("collector", "tui", "native", "tests", "themes", "docs", "bench")
SOURCE_SUFFIXES = (".py", ".c", ".h", ".S", ".def", ".rules", ".toml", ".cmake", ".txt", ".tcss")
#: Where an identifier may stand. The tests of this directory name things that do not exist.
SOURCES = ("collector", "tui", "native", "tests", "bench", "Makefile", "pyproject.toml")
IDENTIFIERS_OF = Path("docs/internals")

#: Files of other projects, which a document names as examples.
FOREIGN = {"threading.py", "queue.py"}

_PATH = re.compile(rf"(?:{'|'.join(TOP)})/[\w./*<>{{}},-]*|[\w./*<>-]+\.(?:py|c|h|md|toml|svg)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?:\(\))?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SKIPPED = {"__pycache__", "node_modules", "build", ".venv", ".git"}


@functools.cache
def files() -> frozenset[str]:
    """Return all files and directories of the repository, below the root."""
    found = {path.name for path in ROOT.iterdir() if path.is_file()}
    for top in TOP:
        for directory, names, leaves in os.walk(ROOT / top):
            names[:] = [name for name in names if name not in _SKIPPED]
            here = os.path.relpath(directory, ROOT)
            found.add(here)
            found.update(f"{here}/{name}" for name in leaves)
    return frozenset(found)


@functools.cache
def words() -> frozenset[str]:
    """Return all identifiers that stand in the sources."""
    found: set[str] = set()
    for source in SOURCES:
        path = ROOT / source
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.parent != Path(__file__).parent and _is_source(file):
                found.update(_WORD.findall(file.read_text(errors="replace")))
    return frozenset(found)


def _is_source(path: Path) -> bool:
    named = path.suffix in SOURCE_SUFFIXES or path.name == "Makefile"
    return named and path.is_file() and not _SKIPPED & set(path.parts[len(ROOT.parts) :])


def missing_paths(text: str) -> list[str]:
    """Return the paths in backquotes that no file has, each with its line."""
    return [
        f"{number}: {code}"
        for number, code in inline_code(text)
        if _PATH.fullmatch(code) and code not in FOREIGN and not _exists(code)
    ]


def _exists(code: str) -> bool:
    pattern = re.sub(r"<[^>]*>", "*", code).removeprefix("./").rstrip("/")
    if not set("*[") & set(pattern):
        return pattern in files() or any(file.endswith(f"/{pattern}") for file in files())
    return any(
        fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file, f"*/{pattern}")
        for file in files()
    )


def broken_links(text: str, directory: Path) -> list[str]:
    """Return the links to files and headings that do not exist, each with its line."""
    broken = []
    for number, target in links(text):
        name, _, anchor = target.partition("#")
        path = directory / name
        if re.match(r"[a-z]+:", target):
            continue
        if name and not path.exists():
            broken.append(f"{number}: {target}")
        elif anchor and path.suffix in ("", ".md"):
            page = path.read_text() if name else text
            if anchor not in anchors(page):
                broken.append(f"{number}: {target}: no such heading")
    return broken


def missing_identifiers(text: str) -> list[str]:
    """Return the identifiers in backquotes that no source has, each with its line."""
    return [
        f"{number}: {code}"
        for number, code in inline_code(text)
        if _IDENTIFIER.fullmatch(code)
        and not _PATH.fullmatch(code)
        and not set(code.removesuffix("()").split(".")) <= words() | _numbers(code)
    ]


def _numbers(code: str) -> set[str]:
    return {part for part in code.split(".") if part.isdigit()}


@pytest.mark.parametrize("path", documents(), ids=str)
def test_paths_exist(path: Path) -> None:
    assert missing_paths((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", documents(), ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    assert broken_links((ROOT / path).read_text(), (ROOT / path).parent) == []


def test_identifiers_exist() -> None:
    pages = [path for path in documents() if path.is_relative_to(IDENTIFIERS_OF)]
    missing = {str(path): missing_identifiers((ROOT / path).read_text()) for path in pages}
    assert {path: found for path, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    "code",
    ["collector/no_such_module.py", "docs/nowhere/", "no_such.c", "native/src/*.pascal"],
)
def test_a_missing_path_is_found(code: str) -> None:
    assert missing_paths(f"Text.\n\nSee `{code}`.") == [f"3: {code}"]


@pytest.mark.parametrize(
    "code",
    [
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
    ],
)
def test_a_path_that_exists_passes(code: str) -> None:
    assert missing_paths(f"See `{code}`.") == []


def test_a_broken_link_is_found() -> None:
    text = "# Here\n\n[a](guide.md) [b](gone.md) [c](guide.md#gone) [d](#here) [e](#gone)"
    text += " [f](https://example.com/gone.md) `[g](gone.md)`"
    assert broken_links(text, ROOT / "docs") == [
        "3: gone.md",
        "3: guide.md#gone: no such heading",
        "3: #gone: no such heading",
    ]


def test_a_missing_identifier_is_found() -> None:
    text = "`wait_begin()`, `Snapshot`, `Snapshot.threads`, `LD_PRELOAD=x`, `wait_never_begins()`"
    text += ", `Snapshot.no_such_field`, `sanitize.py`"
    assert missing_identifiers(text) == ["1: wait_never_begins()", "1: Snapshot.no_such_field"]
