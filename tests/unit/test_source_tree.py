"""The source tree as tools read it that know nothing of the build."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_FILE, MAX_FUNCTION = 500, 60  # lines
#: Words that the project used before it took the field's terms, as parts of a name.
OLD_WORDS = re.compile(
    r"(^|_)(look|looked|told|shown|asked|knots?|judged|around|spent|outside|births|lineage"
    r"|neighbours?|alarms?|unseen|picture|at_least|for_s|blockers?)(_|$)"
)


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


def test_only_the_base_lies_flat_in_the_collector() -> None:
    flat = {path.name for path in (ROOT / "collector").glob("*.py")}
    assert flat == {"__init__.py", "errors.py", "sanitize.py", "native.py"}


def test_files_and_functions_can_be_read_at_one_go() -> None:
    long = []
    for path in _python_files("collector", "tui", "tests", "bench"):
        text = path.read_text()
        if text.count("\n") > MAX_FILE:
            long.append(path)
        for node in ast.walk(ast.parse(text)):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION:
                long.append(path)
    assert not long


def test_no_class_name_stands_for_two_things() -> None:
    places: dict[str, list[str]] = {}
    for path in _python_files("collector", "tui"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_names_are_terms_of_the_field() -> None:
    """The names on the left of CONTRIBUTING's table of terms name no class, function or field."""
    found = set()
    for path in _python_files("collector", "tui"):
        for name in _defined(ast.parse(path.read_text())):
            if OLD_WORDS.search(name.lower()):
                found.add((str(path.relative_to(ROOT)), name))
    assert not found


def test_no_record_is_a_dataclass() -> None:
    """A struct of msgspec is defined in a hundredth of the time (docs/internals/adr/0006)."""
    found = [
        str(path.relative_to(ROOT))
        for path in _python_files("collector", "tui")
        if "@dataclass" in path.read_text()
    ]
    assert not found


def _python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (ROOT / folder).rglob("*.py")


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
