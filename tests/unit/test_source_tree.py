"""The source tree as tools read it that know nothing of the build."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_fresh_checkout_resolves_every_import_of_the_package() -> None:
    """Editors find ``locktop.collector`` through the links in ``locktop/``, without a build."""
    missing = set()
    for top in ("collector", "tui", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("locktop."):
                    assert node.module is not None
                    if not _source(node.module):
                        missing.add((str(path.relative_to(ROOT)), node.module))
    assert not missing


def test_a_module_that_is_not_there_is_not_found() -> None:
    assert not _source("locktop.collector.no_such_module")
    assert _source("locktop.collector.model")


def _source(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()
