"""The source tree as tools read it that know nothing of the build."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.documents import ROOT
from support.source_texts import syntax_nodes

from lint.finding import Fault, Finding
from locktop.collector.analysis.strong_components import strong_components

MAX_FILE, MAX_FUNCTION = 500, 60  # lines
#: The modules that belong to no package.
FLAT = {"__init__.py", "errors.py", "sanitize.py", "native.py"}
#: Unit tests of something else than one module, each with the reason.
NO_MIRROR = {"tui/views/test_not_measured.py": "one rule for all views"}
#: Folders whose tests are about C files and the tests themselves.
NO_MIRRORS = {"native", "lint", "mutants", "support"}

#: The text of each Python file.
Sources = Mapping[Path, str]


def lengths(source: str) -> Iterator[Fault]:
    """Yield a file and functions that are too long."""
    if (count := source.count("\n")) > MAX_FILE:
        yield Fault(1, f"{count} lines in a file")
    for node in syntax_nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (count := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION:
            yield Fault(node.lineno, f"{count} lines in {node.name}()")


def unresolved_imports(source: str) -> Iterator[Fault]:
    """Yield imports that a fresh checkout does not resolve.

    Editors find ``locktop.collector`` through the links in ``locktop/``, without a build.
    """
    for node in syntax_nodes(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("locktop."):
            assert node.module is not None
            if not _source(node.module):
                yield Fault(node.lineno, f"no such module: {node.module}")


def _source(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def dataclasses(source: str) -> Iterator[Fault]:
    """A struct of msgspec is defined in a hundredth of the time (docs/internals/adr/0006)."""
    for number, line in enumerate(source.splitlines(), 1):
        if "@dataclass" in line:
            yield Fault(number, "a dataclass; use msgspec.Struct")


def flat_modules() -> Iterator[Finding]:
    """Yield the modules of the collector that lie in no package."""
    for path in (ROOT / "collector").glob("*.py"):
        if path.name not in FLAT:
            yield Finding(path.relative_to(ROOT), 1, "a module outside the packages")


def circles(sources: Sources) -> Iterator[Finding]:
    """Yield circles of imports that lead through two packages, or a package and a module.

    Members are the modules and packages that lie in one package. An import inside a function and
    an import for types alone count too.
    """
    imports: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for path, source in sources.items():
        importer = _module(path)
        for imported in _imported(source):
            pairs = zip(importer, imported, strict=False)
            common = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
            if common is not None:
                members = imports.setdefault(importer[:common], {})
                members.setdefault(importer[common], set()).add(imported[common])
    for package, members in imports.items():
        for component in strong_components(members):
            names = ", ".join(sorted(component))
            yield Finding(Path(*package[1:]), 1, f"a circle of imports: {names}")


def _module(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return ("locktop", *(parts[:-1] if parts[-1] == "__init__" else parts))


def _imported(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the modules of the project that a module imports."""
    for node in syntax_nodes(source):
        if isinstance(node, ast.ImportFrom) and node.module:
            base = tuple(node.module.split("."))
            yield from (
                (*base, alias.name) if _source(f"{node.module}.{alias.name}") else base
                for alias in node.names
            )


def repeated_classes(sources: Sources) -> Iterator[Finding]:
    """Yield the classes with a name that another class has."""
    first: dict[str, Path] = {}
    for path, source in sorted(sources.items()):
        for node in _classes(source):
            if node.name in first:
                other = first[node.name]
                yield Finding(path, node.lineno, f"class {node.name} is in {other} too")
            first.setdefault(node.name, path)


def _classes(source: str) -> list[ast.ClassDef]:
    """Return the classes that lie in no function and no other class."""
    module = syntax_nodes(source)[0]
    assert isinstance(module, ast.Module)
    return [node for node in module.body if isinstance(node, ast.ClassDef)]


def records_by_position(sources: Sources) -> Iterator[Finding]:
    """Yield records of the model made by position. An inserted field would corrupt them unseen."""
    records = {
        node.name
        for path, source in sources.items()
        if path.is_relative_to("collector/model")
        for node in _classes(source)
        if "Struct" in map(ast.unparse, node.bases)
    }
    for path, source in sources.items():
        for node in syntax_nodes(source):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id in records and len(node.args) > 1:
                yield Finding(path, node.lineno, f"{node.func.id} is made by position")


def tests_without_module(root: Path) -> Iterator[Finding]:
    """Yield unit tests that are neither ``test_MODULE.py`` nor ``test_MODULE_TOPIC.py``."""
    tests = root / "tests" / "unit"
    for path in tests.rglob("test_*.py"):
        name = path.relative_to(tests)
        if str(name) in NO_MIRROR or name.parts[0] in NO_MIRRORS:
            continue
        folder = name.parent if name.parts[0] == "tui" else Path("collector") / name.parent
        words = path.stem.removeprefix("test_").split("_")
        modules = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        if not any((root / folder / f"{module}.py").is_file() for module in modules):
            yield Finding(path.relative_to(root), 1, "no module has the name of this test")
