"""The C files of the native library have layers, without upward calls and circles."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "native" / "src"

#: The folders of native/src from bottom to top. A file includes and calls only its own folder and
#: those below.
FOLDERS = (
    "base", "shm", "tables", "stack", "account", "order", "calls", "profiling", "runtime",
    "interpose",
)  # fmt: skip

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
#: A function or a variable that a .c file defines for others, at the beginning of a line. Exported
#: hooks do not count: the program calls them.
_FUNCTION = re.compile(
    r"^(?!.*\bstatic\b|typedef|#|EXPORT)[a-zA-Z_][\w \t*()]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE
)
_VARIABLE = re.compile(
    r"^(?!static|typedef|extern|return|#)(?:[\w]+[ \t*]+)+(\w+)(?:\[[^\]]*\])?"
    r"(?: __attribute__\(\(.*\)\))?(?: = .*|;)$",
    re.MULTILINE,
)
#: A structure that a file defines, and one that a file names.
_STRUCTURE = re.compile(r"^(?:struct|union|enum) (\w+) \{", re.MULTILINE)
_NAMED_STRUCTURE = re.compile(r"\b(?:struct|union|enum) (\w+)")
#: A prototype in a header, which is no call.
_PROTOTYPE = re.compile(r"^(?!.*\bstatic\b|#)[a-zA-Z_][\w \t*()]*\([^;{}]*\);$", re.MULTILINE)


def _read(sources: Path) -> dict[str, str]:
    """Return the text of each C file, without comments, by its path below `sources`."""
    return {
        str(path.relative_to(sources)): _COMMENT.sub(" ", path.read_text())
        for path in sorted(sources.rglob("*"))
        if path.suffix in {".c", ".h", ".def"}
    }


def _module(path: str) -> str:
    """Return the module of a file: a .c file and its header are one module."""
    return path.rsplit(".", 1)[0]


def _definitions(files: Mapping[str, str]) -> dict[str, str]:
    """Return the module that defines each name that one .c file alone defines for others."""
    definers: dict[str, set[str]] = {}
    for path, text in files.items():
        if path.endswith(".c"):
            for name in [*_FUNCTION.findall(text), *_VARIABLE.findall(text)]:
                definers.setdefault(name, set()).add(_module(path))
    return {name: modules.pop() for name, modules in definers.items() if len(modules) == 1}


def _structures(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules that define each structure."""
    definers: dict[str, set[str]] = {}
    for path, text in files.items():
        for name in _STRUCTURE.findall(text):
            definers.setdefault(name, set()).add(_module(path))
    return definers


def _edges(files: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return the dependencies: (module, used module), with the name that causes each.

    A module depends on what it includes, and on the functions and variables that it uses, also in
    an inline function. The name of a structure, without its definition, counts as well.
    """
    edges: dict[tuple[str, str], str] = {}
    definitions = _definitions(files)
    structures = _structures(files)
    for path, text in files.items():
        module = _module(path)
        for target in _INCLUDE.findall(text):
            if target in files and _module(target) != module:
                edges[module, _module(target)] = f"{path} includes {target}"
        if path.endswith(".def"):
            continue
        code = _PROTOTYPE.sub("", _STRING.sub('""', text))
        for name in set(re.findall(r"\b\w+\b", code)):
            definer = definitions.get(name, module)
            if definer != module:
                edges.setdefault((module, definer), f"{path} uses {name} of {definer}.c")
        for name in set(_NAMED_STRUCTURE.findall(text)):
            definers = structures.get(name, set())
            for definer in definers if module not in definers else ():
                edges.setdefault((module, definer), f"{path} names {name} of {definer}")
    return edges


def _upwards(edges: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the dependencies from a folder on a higher folder."""
    height = {folder: i for i, folder in enumerate(FOLDERS)}
    return [
        how
        for (user, used), how in edges.items()
        if height[user.split("/")[0]] < height[used.split("/")[0]]
    ]


def _circle(edges: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the modules of one circle, none if there is none."""
    graph: dict[str, set[str]] = {}
    for user, used in edges:
        graph.setdefault(user, set()).add(used)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_folder_is_in_the_order() -> None:
    assert {path.name for path in SOURCES.iterdir() if path.is_dir()} == set(FOLDERS)
    assert not [path.name for path in SOURCES.glob("*.[ch]")]


def test_every_include_is_written_from_the_root() -> None:
    files = _read(SOURCES)
    wrong = [
        f"{path}: {target}"
        for path, text in files.items()
        for target in _INCLUDE.findall(text)
        if target not in files and not target.startswith("locktop/")
    ]
    assert not wrong


def test_no_dependency_runs_upwards() -> None:
    assert not _upwards(_edges(_read(SOURCES)))


def test_there_is_no_circle() -> None:
    assert not _circle(_edges(_read(SOURCES)))


def test_each_layer_uses_its_own_state() -> None:
    """A field of a thread's state that only higher layers use would be in the wrong layer."""
    files = _read(SOURCES)
    states = [
        (path, fields)
        for path, text in files.items()
        for fields in re.findall(r"^struct \w+_state \{$(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    ]
    assert len(states) > 4
    for path, fields in states:
        folder = path.split("/")[0]
        code = " ".join(text for user, text in files.items() if user.split("/")[0] == folder)
        for field in re.findall(r"(\w+)(?:\s*\[\w+\])?;", fields):
            assert re.search(rf"(->|_state\.){field}\b", code), (path, field)


def test_the_definitions_are_found() -> None:
    """The patterns find the definitions of an example."""
    definitions = _definitions(_read(SOURCES))
    assert definitions["lt_own"] == "base/tls"
    assert definitions["lt_control"] == "base/modes"
    assert definitions["lt_settings"] == "base/settings"
    assert definitions["shm_alloc"] == "shm/arena"
    assert definitions["array_push"] == "shm/array"
    assert definitions["wait_begin"] == "account/wait"
    assert len(definitions) > 120


def _defines(name: str, *called: str) -> str:
    """Return C text that defines a function which calls others."""
    return f"int {name}(void)\n{{\n" + "".join(f"    {other}();\n" for other in called) + "}\n"


@pytest.mark.parametrize(
    ("files", "upwards", "circle"),
    [
        ({"base/a.c": '#include "shm/b.h"', "shm/b.h": ""}, True, False),
        ({"base/a.c": _defines("f", "g"), "order/b.c": _defines("g")}, True, False),
        ({"base/a.c": _defines("f"), "shm/b.c": _defines("g", "f")}, False, False),
        ({"shm/a.h": '#include "shm/b.h"', "shm/b.h": '#include "shm/a.h"'}, False, True),
        ({"shm/a.c": _defines("f", "g"), "shm/b.c": _defines("g", "f")}, False, True),
        (
            {"base/a.h": "static inline " + _defines("f", "g"), "shm/b.c": _defines("g")},
            True,
            False,
        ),
        ({"base/a.h": "int g(int number);", "shm/b.c": _defines("g")}, False, False),
        ({"base/a.h": "struct s *one;", "shm/b.h": "struct s {\n};"}, True, False),
        ({"shm/a.c": "struct s {\n};", "base/b.c": "struct s {\n};"}, False, False),
    ],
)
def test_the_checks_find_forged_faults(files: dict[str, str], upwards: bool, circle: bool) -> None:
    edges = _edges(files)
    assert bool(_upwards(edges)) is upwards
    assert bool(_circle(edges)) is circle
