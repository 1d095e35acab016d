"""Sentences of the documents are short, and their lines fit a terminal."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from support.documents import ROOT, documents, lines, sentences, word_count

MAX_WORDS = 30
MAX_MEDIAN = 15
MAX_COLUMNS = 100


def long_sentences(text: str) -> list[str]:
    """Return each sentence of more than MAX_WORDS words, with its line and its length."""
    return [
        f"{number}: {count} words: {sentence}"
        for number, sentence in sentences(text)
        if (count := word_count(sentence)) > MAX_WORDS
    ]


def median_words(text: str) -> float:
    """Return the median length of the sentences in words."""
    return statistics.median(word_count(sentence) for _, sentence in sentences(text))


def long_lines(text: str) -> list[str]:
    """Return each line of prose of more than MAX_COLUMNS columns. Rows of tables may be longer."""
    return [
        f"{line.number}: {len(line.text)} columns: {line.text}"
        for line in lines(text)
        if len(line.text) > MAX_COLUMNS and not line.is_table_row and " " in line.text.strip()
    ]


@pytest.mark.parametrize("path", documents(), ids=str)
def test_sentences_are_short(path: Path) -> None:
    assert long_sentences((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", documents(), ids=str)
def test_most_sentences_are_short(path: Path) -> None:
    assert median_words((ROOT / path).read_text()) <= MAX_MEDIAN


@pytest.mark.parametrize("path", documents(), ids=str)
def test_lines_fit(path: Path) -> None:
    assert long_lines((ROOT / path).read_text()) == []


def test_every_document_is_read() -> None:
    wanted = {Path("README.md"), Path("CONTRIBUTING.md"), Path("docs/internals/overview.md")}
    assert wanted <= set(documents())


THIRTY_ONE = "One two three four five six seven eight nine ten " * 3 + "more."
THIRTY = THIRTY_ONE.replace(" more.", ".")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (THIRTY_ONE, 1),
        (f"# Title\n\nShort. {THIRTY_ONE} Short.", 3),
        (f"- Short.\n- {THIRTY_ONE}", 2),
        (f"| a | b |\n|---|---|\n| Short. | {THIRTY_ONE} |", 3),
        ("one\n" * 31, 1),
        (f"    code\n\n{THIRTY_ONE}", 3),
        (f"```\ncode\n```\n{THIRTY_ONE}", 4),
        (f"{THIRTY[:-1]} `code` ends.", 1),
        (f"{THIRTY[:-1]} [link](docs/guide.md).", 1),
    ],
)
def test_a_long_sentence_is_found(text: str, number: int) -> None:
    (found,) = long_sentences(text)
    assert found.startswith(f"{number}: 3")


@pytest.mark.parametrize(
    "text",
    [
        THIRTY,
        f"{THIRTY} {THIRTY}",
        f"{THIRTY} locktop says so.",
        f"{THIRTY} `locktop` says so.",
        f"- {THIRTY}\n- {THIRTY}",
        f"| {THIRTY} | {THIRTY} |",
        f"# {THIRTY}\n{THIRTY}",
        f"Code follows:\n\n    {THIRTY_ONE}\n    {THIRTY_ONE}\n",
        f"```\n{THIRTY_ONE}\n```",
        f"<!-- {THIRTY_ONE} -->",
        "It reads `a b c d e f g h i j k l m n o p q r s t u v w x y z` as one word.",
    ],
)
def test_short_sentences_pass(text: str) -> None:
    assert long_sentences(text) == []


def test_the_median_is_that_of_the_sentences() -> None:
    assert median_words(f"Short. {THIRTY} Two words.") == 2


def test_a_long_line_is_found() -> None:
    words = "words " * 17
    assert [found[:2] for found in long_lines(f"Short.\n\n{words}\n")] == ["3:"]
    assert long_lines(f"| {words} |\n\n    {words}\n\n```\n{words}\n```\n") == []


def long_entries(changelog: str) -> list[str]:
    """Return each block of the changelog of more than MAX_WORDS words in all its sentences."""
    counts: dict[int, int] = {}
    for number, sentence in sentences(changelog):
        counts[number] = counts.get(number, 0) + word_count(sentence)
    return [f"{number}: {count} words" for number, count in counts.items() if count > MAX_WORDS]


def test_entries_of_the_changelog_are_short() -> None:
    assert long_entries((ROOT / "CHANGELOG.md").read_text()) == []


def test_a_long_entry_is_found() -> None:
    assert long_entries(f"- {THIRTY}\n- {THIRTY} More.\n") == ["2: 31 words"]
