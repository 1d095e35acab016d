"""The source tree as tools read it that know nothing of the build."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from locktop.collector.analysis.strong_components import strong_components

ROOT = Path(__file__).resolve().parents[2]
MAX_FILE, MAX_FUNCTION = 500, 60  # lines
#: Words that the project used before it took the field's terms, as parts of a name.
OLD_WORDS = re.compile(
    r"(^|_)(look|looked|told|shown|asked|knots?|judged|around|spent|outside|births|lineage"
    r"|neighbours?|alarms?|unseen|picture|at_least|for_s|blockers?|bare|places?)(_|$)"
)
_C_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)


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


def test_packages_import_each_other_in_one_direction() -> None:
    """No circle of imports leads through two packages, or through a package and a module."""
    assert [found for top in ("collector", "tui") for found in _circles(top)] == []


def _circles(top: str) -> Iterator[str]:
    """Yield the members of each package that import each other, directly or by other members.

    Members are the modules and packages that lie in one package. An import inside a function and
    an import for types alone count too.
    """
    imports: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for path in _python_files(top):
        importer = _module(path)
        for imported in _imported(ast.parse(path.read_text())):
            pairs = zip(importer, imported, strict=False)
            common = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
            if common is not None:
                members = imports.setdefault(importer[:common], {})
                members.setdefault(importer[common], set()).add(imported[common])
    for package, members in imports.items():
        for component in strong_components(members):
            yield f"{'.'.join(package)}: {', '.join(sorted(component))}"


def _module(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ("locktop", *(parts[:-1] if parts[-1] == "__init__" else parts))


def _imported(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """Yield the modules of the project that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            base = tuple(node.module.split("."))
            yield from (
                (*base, alias.name) if _source(f"{node.module}.{alias.name}") else base
                for alias in node.names
            )


def test_no_class_name_stands_for_two_things() -> None:
    places: dict[str, list[str]] = {}
    for path in _python_files("collector", "tui"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_names_are_terms_of_the_field() -> None:
    """No class, function, field or variable has a name of the time before the terms."""
    found = set()
    for path in _python_files("collector", "tui", "bench"):
        for name in _defined(ast.parse(path.read_text())):
            if OLD_WORDS.search(name.lower()):
                found.add((str(path.relative_to(ROOT)), name))
    assert not found


def test_names_in_c_are_terms_of_the_field() -> None:
    """Functions, variables, fields, macros and constants of ``native/``."""
    found = set()
    for path in sorted((ROOT / "native").rglob("*")):
        if path.suffix in (".c", ".h", ".def"):
            for name in _c_names(path.read_text()):
                if OLD_WORDS.search(name.lower()):
                    found.add((str(path.relative_to(ROOT)), name))
    assert not found


def test_c_names_are_found_outside_of_text_alone() -> None:
    code = """#define MAX_KNOTS 1 /* told */
    enum { LT_LOOK };
    // asked
    struct picture { int *spent[MAX_KNOTS]; } a = {"bare", '"', "around"};
    """
    found = {name for name in _c_names(code) if OLD_WORDS.search(name.lower())}
    assert found == {"MAX_KNOTS", "LT_LOOK", "picture", "spent"}


def _c_names(code: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", _C_TEXT.sub(" ", code)))


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
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
