"""Names in the code are terms of the field, and tests use public names alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.source_texts import syntax_nodes

from lint.finding import Fault

#: Words that the project used before it took the field's terms, as parts of a name.
OLD_WORDS = re.compile(
    r"(^|_)(look|looked|told|shown|asked|knots?|judged|around|spent|outside|births|lineage"
    r"|neighbours?|alarms?|unseen|picture|at_least|for_s|blockers?|bare|places?)(_|$)"
)
#: Names that say nothing of what a variable holds, in folders of C that are done with them.
VAGUE_NAMES = re.compile(r"\b(at|found|known|of|one|told)\b")
NAMED_FOLDERS = (
    "native/bench",
    "native/demo",
    "native/include",
    "native/portable",
    "native/reader",
    "native/src",
    "native/tests",
)
#: The folders of the product, whose functions are verbs or nouns, and whose attributes say what
#: they are.
PRODUCT = ("collector", "tui")
#: The folders whose variables and private fields say what they are.
FINISHED = (*PRODUCT, "tests/support")
#: Private functions named by a participle alone: it says neither what is done nor what comes back.
PARTICIPLE = re.compile(
    r"_([a-z]+(ed|less)|unheard|chosen|drawn|given|got|held|kept|left|lost|seen|sent|shown|taken"
    r"|written)"
)
#: Variables that do not say what they hold.
VAGUE_VARIABLES = {"found", "one", "at", "of", "known", "told", "made"}
#: A function is a verb or a noun. Textual gives ``on_`` its meaning, Python ``from_`` and ``to_``.
PREPOSITION = re.compile(
    r"_?(of|in|as|at|by|with|within|without|before|after|under|over|until|upon)(_|$)"
)
_C_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
#: Private names that tests may read, each with the reason.
PRIVATE_NAMES = {
    "_background_screens": "Textual has no public way to the screens below a transparent one",
    "_batch_count": "Textual has no public way to whether an app draws nothing yet",
    "_callbacks": "Textual has no public way to changes that a screen will draw",
    "_character_to_key": "Textual has no public way from a character to the name of its key",
    "_compositor": "Textual has no public way to the lines of the screen",
    "_context": "Textual has no public way to handle a message as another widget does",
    "_current_frames": "the documented function of sys",
    "_dirty_widgets": "Textual has no public way to changes that a screen will draw",
    "_driver": "Textual has no public way to the driver of an app",
    "_exit": "the documented function of os",
    "_layout_required": "Textual has no public way to changes that a screen will draw",
    "_on_timer_update": "Textual has no public way to draw without its timer",
    "_parse_rules": "Textual has no public way to share parsed styles",
    "_ready": "asyncio has no public way to the callbacks that are due",
    "_recompose_required": "Textual has no public way to changes that a screen will draw",
    "_repaint_required": "Textual has no public way to changes that a screen will draw",
    "_scroll_required": "Textual has no public way to changes that a screen will draw",
    "_variables": "Textual has no public way to the variables of its styles",
}
#: Documented methods and attributes of every NamedTuple.
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def old_words_in_python(source: str) -> Iterator[Fault]:
    """Yield the classes, functions, fields and variables named before the terms."""
    for line, name in _defined(source):
        if OLD_WORDS.search(name.lower()):
            yield Fault(line, f"an old word: {name}")


def _defined(source: str) -> Iterator[tuple[int, str]]:
    for node in syntax_nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def vague_names(source: str) -> Iterator[Fault]:
    """Yield the variables and private fields that do not say what they hold.

    The public fields of a public class are left out: they may be keys of a document.
    """
    fields = {id(field) for field in _public_fields(source)}
    for node in syntax_nodes(source):
        if isinstance(node, ast.arg) and _is_vague(node.arg):
            yield Fault(node.lineno, f"a vague name: {node.arg}")
        elif (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and _is_vague(node.id)
            and id(node) not in fields
        ):
            yield Fault(node.lineno, f"a vague name: {node.id}")


def vague_attributes(source: str) -> Iterator[Fault]:
    """Yield the attributes that do not say what they hold."""
    for node in syntax_nodes(source):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if _is_vague(node.attr):
            yield Fault(node.lineno, f"a vague name of an attribute: {node.attr}")


def vague_functions(source: str) -> Iterator[Fault]:
    """Yield the functions named by a preposition, or by a word that says nothing."""
    for node in syntax_nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if PREPOSITION.match(node.name):
            yield Fault(node.lineno, f"a function named by a preposition: {node.name}")
        elif _is_vague(node.name):
            yield Fault(node.lineno, f"a vague name of a function: {node.name}")
        elif PARTICIPLE.fullmatch(node.name) and not node.decorator_list:
            yield Fault(node.lineno, f"a function named by a participle: {node.name}")


def _is_vague(name: str) -> bool:
    return name.lstrip("_") in VAGUE_VARIABLES


def _public_fields(source: str) -> Iterator[ast.expr]:
    for node in syntax_nodes(source):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            targets = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            yield from (target for target in targets if not ast.unparse(target).startswith("_"))


def is_finished(path: Path) -> bool:
    """Tell whether a file must have no vague names of variables."""
    return any(map(path.is_relative_to, FINISHED))


def is_product(path: Path) -> bool:
    """Tell whether the functions and attributes of a file must have names, too."""
    return any(map(path.is_relative_to, PRODUCT))


def old_words_in_c(code: str) -> Iterator[Fault]:
    """Yield the functions, variables, fields, macros and constants named before the terms."""
    for number, line in _lines_without_text(code):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            if OLD_WORDS.search(name.lower()):
                yield Fault(number, f"an old word: {name}")


def vague_names_in_c(code: str) -> Iterator[Fault]:
    """Yield the variables and fields whose name does not say what they hold."""
    for number, line in _lines_without_text(code):
        for name in VAGUE_NAMES.findall(line):
            yield Fault(number, f"a vague name: {name}")


def _lines_without_text(code: str) -> Iterator[tuple[int, str]]:
    without_text = _C_TEXT.sub(lambda text: " " + "\n" * text[0].count("\n"), code)
    yield from enumerate(without_text.splitlines(), 1)


def private_names(source: str) -> Iterator[Fault]:
    """Yield private names: attributes of others, imports, and texts that a patch names."""
    for node in syntax_nodes(source):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("attr", "patch")):
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            names = [text.rpartition(".")[2] for text in texts if isinstance(text, str)]
        for name in names:
            if re.match(r"_[^_]", name) and name not in PRIVATE_NAMES.keys() | OF_NAMED_TUPLES:
                yield Fault(getattr(node, "lineno", 1), f"a private name: {name}")
