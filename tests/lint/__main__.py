"""Checks the prose of documents and comments, the names in the code, and the source tree.

    PYTHONPATH=tests python -m lint

Each line names a file, a line and what is wrong there. The exit status is 1 if there is any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from support.documents import ROOT, documents
from support.source_texts import PYTHON, C, source_files

from lint import columns, commands, english, names, references, source_tree, target_list
from lint.finding import Finding, in_file

ROOTS = ("collector", "tui", "bench", "native", "tests")
#: The product, without its tests.
PRODUCT = ("collector", "tui")
CHANGELOG = Path("CHANGELOG.md")
TARGETS = Path("tests/targets/README.md")
#: The page with the columns of the lists.
SCREEN = Path("docs/screen.md")
#: Documents whose inline code must be identifiers of the sources.
INTERNALS = Path("docs/internals")


def main() -> int:
    """Print all findings; return the exit status."""
    findings = sorted({*_of_documents(), *_of_sources()})
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def _of_documents() -> Iterator[Finding]:
    for path in documents():
        text = (ROOT / path).read_text()
        yield from in_file(path, english.of_document(text))
        yield from in_file(path, references.missing_paths(text))
        yield from in_file(path, references.broken_links(text, (ROOT / path).parent))
        yield from in_file(path, commands.unknown_commands(text))
        yield from in_file(path, commands.unknown_targets(text))
        if path == CHANGELOG:
            yield from in_file(path, english.of_changelog(text))
        if path.is_relative_to(INTERNALS):
            yield from in_file(path, references.missing_identifiers(text))
    yield from in_file(SCREEN, columns.missing_columns((ROOT / SCREEN).read_text()))
    yield from in_file(TARGETS, target_list.faults((ROOT / TARGETS).read_text()))


def _of_sources() -> Iterator[Finding]:
    product: dict[Path, str] = {}
    for path in source_files(ROOTS):
        source = (ROOT / path).read_text()
        yield from in_file(path, english.of_source(path, source))
        if path.suffix in PYTHON:
            yield from _of_python(path, source)
        elif path.suffix in C:
            yield from in_file(path, names.old_words_in_c(source))
            if any(path.is_relative_to(folder) for folder in names.NAMED_FOLDERS):
                yield from in_file(path, names.vague_names_in_c(source))
        if path.suffix in PYTHON and path.parts[0] in PRODUCT:
            product[path] = source
    for top in PRODUCT:
        members = {path: text for path, text in product.items() if path.parts[0] == top}
        yield from source_tree.circles(members)
    yield from source_tree.repeated_classes(product)
    yield from source_tree.records_by_position(product)
    yield from source_tree.flat_modules()
    yield from source_tree.tests_without_module(ROOT)


def _of_python(path: Path, source: str) -> Iterator[Finding]:
    yield from in_file(path, source_tree.lengths(source))
    yield from in_file(path, source_tree.unresolved_imports(source))
    yield from in_file(path, names.old_words_in_python(source))
    if names.is_finished(path):
        yield from in_file(path, names.vague_names(source))
    if names.is_product(path):
        yield from in_file(path, names.vague_attributes(source))
        yield from in_file(path, names.vague_functions(source))
    if path.parts[0] in PRODUCT:
        yield from in_file(path, source_tree.dataclasses(source))
    elif path.parts[0] == "tests":
        yield from in_file(path, names.private_names(source))


if __name__ == "__main__":
    sys.exit(main())
