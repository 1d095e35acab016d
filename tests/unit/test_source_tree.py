"""The source tree as tools read it that know nothing of the build."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.source_texts import C, source_files

from locktop.collector.analysis.strong_components import strong_components

ROOT = Path(__file__).resolve().parents[2]
MAX_FILE, MAX_FUNCTION = 500, 60  # lines
#: Words that the project used before it took the field's terms, as parts of a name.
OLD_WORDS = re.compile(
    r"(^|_)(look|looked|told|shown|asked|knots?|judged|around|spent|outside|births|lineage"
    r"|neighbours?|alarms?|unseen|picture|at_least|for_s|blockers?|bare|places?)(_|$)"
)
_C_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_a_fresh_checkout_resolves_every_import_of_the_package() -> None:
    """Editors find ``locktop.collector`` through the links in ``locktop/``, without a build."""
    missing = set()
    for top in ("collector", "tui", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("locktop."):
                    assert node.module is not None
                    if not _source(node.module):
                        missing.add((str(path.relative_to(ROOT)), node.module))
    assert not missing


def test_a_missing_module_is_not_found() -> None:
    assert not _source("locktop.collector.no_such_module")
    assert _source("locktop.collector.model")


def _source(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def test_only_the_base_lies_flat_in_the_collector() -> None:
    flat = {path.name for path in (ROOT / "collector").glob("*.py")}
    assert flat == {"__init__.py", "errors.py", "sanitize.py", "native.py"}


def test_files_and_functions_are_short() -> None:
    long = []
    for path in _python_files("collector", "tui", "tests", "bench"):
        text = path.read_text()
        if text.count("\n") > MAX_FILE:
            long.append(path)
        for node in ast.walk(_tree(path)):
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
        for imported in _imported(_tree(path)):
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
    files_of: dict[str, list[str]] = {}
    for path in _python_files("collector", "tui"):
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                files_of.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in files_of.items() if len(found) > 1} == {}


def test_names_are_terms_of_the_field() -> None:
    """No class, function, field or variable has a name of the time before the terms."""
    found = set()
    for path in _python_files("collector", "tui", "bench", "tests"):
        for name in _defined(_tree(path)):
            if OLD_WORDS.search(name.lower()):
                found.add((str(path.relative_to(ROOT)), name))
    assert not found


def test_names_in_c_are_terms_of_the_field() -> None:
    """Functions, variables, fields, macros and constants of the library and the targets."""
    found = set()
    for path in source_files(["native", "tests"]):
        if path.suffix in C:
            for name in _c_names((ROOT / path).read_text()):
                if OLD_WORDS.search(name.lower()):
                    found.add((str(path), name))
    assert not found


def test_only_c_code_has_names() -> None:
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


def test_no_record_of_the_model_is_made_by_position() -> None:
    """One inserted field would corrupt such a record in silence."""
    records = {
        node.name
        for path in _python_files("collector/model")
        for node in _tree(path).body
        if isinstance(node, ast.ClassDef) and "Struct" in map(ast.unparse, node.bases)
    }
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _python_files("collector", "tui")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in records
        and len(node.args) > 1
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
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


#: Private names that tests may read, each with the reason.
PRIVATE_NAMES = {
    "_background_screens": "Textual has no public way to the screens below a transparent one",
    "_context": "Textual has no public way to handle a message as another widget does",
    "_character_to_key": "Textual has no public way from a character to the name of its key",
    "_compositor": "Textual has no public way to the lines of the screen",
    "_current_frames": "the documented function of sys",
    "_driver": "Textual has no public way to the driver of an app",
    "_exit": "the documented function of os",
}
#: Documented methods and attributes of every NamedTuple.
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def test_no_test_uses_a_private_name_of_the_product() -> None:
    """Private: an attribute of another object, an import, or a text that a patch names."""
    found = set()
    for path in _python_files("tests"):
        for name in _private_names(_tree(path)):
            if name not in PRIVATE_NAMES.keys() | OF_NAMED_TUPLES:
                found.add((str(path.relative_to(ROOT)), name))
    assert not found


def _private_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("attr", "patch")):
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            names = [text.rpartition(".")[2] for text in texts if isinstance(text, str)]
        yield from (name for name in names if re.match(r"_[^_]", name))


#: Tests of something else than one module, each with the reason.
NO_MIRROR = {
    "test_source_tree.py": "the layout of the sources",
    "tui/views/test_not_measured.py": "one rule for all views",
}
#: Folders whose tests are about C files, documents and the tests themselves.
NO_MIRRORS = {"native", "documents", "mutants", "support"}


def test_each_unit_test_mirrors_a_module() -> None:
    """A test file has the name of a module, or that name and a topic: ``test_MODULE_TOPIC.py``."""
    tests = ROOT / "tests" / "unit"
    lost = []
    for path in tests.rglob("test_*.py"):
        name = path.relative_to(tests)
        if str(name) in NO_MIRROR or name.parts[0] in NO_MIRRORS:
            continue
        folder = name.parent if name.parts[0] == "tui" else Path("collector") / name.parent
        words = path.stem.removeprefix("test_").split("_")
        modules = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        if not any((ROOT / folder / f"{module}.py").is_file() for module in modules):
            lost.append(str(name))
    assert not lost
