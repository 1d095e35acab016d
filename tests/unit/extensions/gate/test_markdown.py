"""The result of a gate as Markdown, read by markdown-it-py."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from unit.builders.gate_results import (
    HOSTILE,
    LONGER,
    NOTHING,
    SAME,
    STEADY,
    WORSE,
    comparison,
    result,
)

from locktop.collector.extensions.gate import markdown
from locktop.collector.extensions.gate.model import GateResult
from locktop.collector.sanitize import clean

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def tokens(whole: GateResult) -> list[Token]:
    return PARSER.parse(markdown.render(whole))


def texts(parsed: list[Token]) -> Iterator[str]:
    """Yield the text of each block, as a reader sees it."""
    for token in parsed:
        if token.type == "inline":
            parts = [part.content for part in token.children or () if part.type != "html_inline"]
            yield "".join(parts)


def test_the_heading_and_the_first_paragraph_have_the_answer() -> None:
    heading, answer, *_ = texts(tokens(WORSE))
    assert heading == "❌ Lock gate: worse"
    assert answer.startswith("worse: the hold of mutex g_lock is longer by +30.0 %")
    assert next(texts(tokens(NOTHING))) == "⚠️ Lock gate: nothing ran"


def test_the_table_has_a_row_for_each_class() -> None:
    parsed = tokens(WORSE)
    assert [token.type for token in parsed].count("tr_open") == 3
    cells = list(texts(parsed))
    row = cells[cells.index("mutex g_lock") :]
    assert row[1:3] == ["1.00 ms", "1.30 ms"]
    assert row[6] == "worse"


def test_waits_have_a_table_of_their_own() -> None:
    assert "Mean wait of an acquisition (not part of the answer)" in set(texts(tokens(SAME)))
    assert [token.type for token in tokens(SAME)].count("table_open") == 2


def test_a_hostile_name_stays_text() -> None:
    parsed = tokens(result(comparison(STEADY, LONGER, HOSTILE), name=HOSTILE))
    name = clean(f"mutex {HOSTILE}")
    assert name in set(texts(parsed))
    inline = [part for token in parsed for part in token.children or ()]
    markup = {part.content for part in inline if part.type == "html_inline"}
    assert markup == {"<code>", "</code>"}
    assert {part.type for part in inline} <= {
        *("text", "text_special", "code_inline", "html_inline"),
        *("strong_open", "strong_close"),  # the titles of the tables
    }
    assert [token.type for token in parsed].count("tr_open") == 2
    assert [token.type for token in parsed].count("td_open") == 7


def test_no_program_sees_a_mention_or_a_link() -> None:
    page = markdown.render(result(comparison(STEADY, LONGER, HOSTILE), name=HOSTILE))
    assert "@" not in page
    assert "://" not in page
    assert "www." not in page
    assert "#1" not in page.replace("&#1", "")
