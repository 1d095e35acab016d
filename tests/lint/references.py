"""Every path, link and identifier that a document names exists in the repository."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from support.documents import ROOT, anchors, inline_code, links

from lint.finding import Fault

TOP = ("collector", "tui", "native", "tests", "themes", "docs", "bench")
SOURCE_SUFFIXES = (".py", ".c", ".h", ".S", ".def", ".rules", ".toml", ".cmake", ".txt", ".tcss")
#: Where an identifier may stand.
SOURCES = ("collector", "tui", "native", "tests", "bench", "Makefile", "pyproject.toml")
#: The tests of this lint name things that do not exist.
_NAMES_WRONG_THINGS = ROOT / "tests" / "unit" / "lint"

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
            if file.parent != _NAMES_WRONG_THINGS and _is_source(file):
                found.update(_WORD.findall(file.read_text(errors="replace")))
    return frozenset(found)


def _is_source(path: Path) -> bool:
    named = path.suffix in SOURCE_SUFFIXES or path.name == "Makefile"
    return named and path.is_file() and not _SKIPPED & set(path.parts[len(ROOT.parts) :])


def missing_paths(text: str) -> Iterator[Fault]:
    """Yield the paths in backquotes that no file has."""
    for number, code in inline_code(text):
        if _PATH.fullmatch(code) and code not in FOREIGN and not _exists(code):
            yield Fault(number, f"no such file: {code}")


def _exists(code: str) -> bool:
    pattern = re.sub(r"<[^>]*>", "*", code).removeprefix("./").rstrip("/")
    if not set("*[") & set(pattern):
        return pattern in files() or any(file.endswith(f"/{pattern}") for file in files())
    return any(
        fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file, f"*/{pattern}")
        for file in files()
    )


def broken_links(text: str, directory: Path) -> Iterator[Fault]:
    """Yield the links from ``directory`` to files and headings that do not exist."""
    for number, target in links(text):
        name, _, anchor = target.partition("#")
        path = directory / name
        if re.match(r"[a-z]+:", target):
            continue
        if name and not path.exists():
            yield Fault(number, f"no such file: {target}")
        elif anchor and path.suffix in ("", ".md"):
            page = path.read_text() if name else text
            if anchor not in anchors(page):
                yield Fault(number, f"no such heading: {target}")


def missing_identifiers(text: str) -> Iterator[Fault]:
    """Yield the identifiers in backquotes that no source has."""
    for number, code in inline_code(text):
        if _IDENTIFIER.fullmatch(code) and not _PATH.fullmatch(code):
            parts = code.removesuffix("()").split(".")
            if any(part not in words() and not part.isdigit() for part in parts):
                yield Fault(number, f"no such identifier: {code}")
