"""Sentences of documents and comments are short, and their subject has a name."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.documents import lines, sentences, word_count
from support.source_texts import texts

from lint.finding import Fault

MAX_WORDS = 30
MAX_MEDIAN = 15
#: Of fewer sentences the median says nothing of a habit.
MIN_SENTENCES = 10
MAX_WORDS_OF_ENTRY = 20
MAX_COLUMNS = 100
#: Words that begin a sentence and stand for a subject that the sentence does not name.
_UNNAMED_SUBJECT = re.compile(r"(It|What|Who|That) ")


def of_document(text: str) -> Iterator[Fault]:
    """Yield what is wrong with the prose of a document. Rows of tables may be longer than lines."""
    yield from _lengths(list(sentences(text)))
    for line in lines(text):
        if len(line.text) > MAX_COLUMNS and not line.is_table_row and " " in line.text.strip():
            yield Fault(line.number, f"{len(line.text)} columns")


def of_changelog(text: str) -> Iterator[Fault]:
    """Yield each entry of more than MAX_WORDS_OF_ENTRY words in all its sentences."""
    counts: dict[int, int] = {}
    for number, sentence in sentences(text):
        counts[number] = counts.get(number, 0) + word_count(sentence)
    for number, count in counts.items():
        if count > MAX_WORDS_OF_ENTRY:
            yield Fault(number, f"{count} words in an entry")


def of_source(path: Path, source: str) -> Iterator[Fault]:
    """Yield what is wrong with the comments, the docstrings and the lines of a source file."""
    found = [
        (number, sentence)
        for number, text in texts(path, source)
        for _, sentence in sentences(text)
    ]
    yield from _lengths(found)
    for number, sentence in found:
        if _UNNAMED_SUBJECT.match(sentence) and not sentence.endswith("?"):
            yield Fault(number, f"no subject: {sentence}")
    for number, line in enumerate(source.splitlines(), 1):
        if len(_without_directive(line)) > MAX_COLUMNS and " " in line.strip():
            yield Fault(number, f"{len(line)} columns")


def _lengths(found: Iterable[tuple[int, str]]) -> Iterator[Fault]:
    counts = []
    for number, sentence in found:
        counts.append(count := word_count(sentence))
        if count > MAX_WORDS:
            yield Fault(number, f"{count} words: {sentence}")
    if len(counts) >= MIN_SENTENCES and (median := statistics.median(counts)) > MAX_MEDIAN:
        yield Fault(1, f"median of {median:g} words a sentence")


def _without_directive(line: str) -> str:
    """Return a line of code without a comment that only tools read."""
    return line.partition("  # type: ")[0]
