"""The result of a gate as Markdown, for a pull request or the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from locktop.collector.extensions.gate import sentences
from locktop.collector.extensions.gate.model import GateOutcome, GateResult
from locktop.collector.sanitize import clean

_SIGNS = {GateOutcome.SAME: "✅", GateOutcome.WORSE: "❌"}
#: Characters that end a span of code, or a cell of a table.
_SPECIAL = frozenset("`|\\<&")
#: Characters that are markup within a line, or that make GitHub see a link or a mention.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#!|&~@$^=/]|(?<=w)\.")


def render(result: GateResult) -> str:
    """Return the page, with headings of the third level."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: GateResult) -> Iterator[str]:
    yield f"### {_SIGNS.get(result.outcome, '⚠️')} Lock gate: {result.outcome}"
    yield ""
    yield text(sentences.headline(result))
    for quantity, title in sentences.titles(result):
        yield ""
        yield f"**{text(title)}**"
        yield ""
        yield f"| {' | '.join(sentences.HEADS)} |"
        yield f"|---|{'---:|' * (len(sentences.HEADS) - 1)}"
        for name, *cells in sentences.rows(result, quantity):
            yield f"| {code(name)} | {' | '.join(map(text, cells))} |"
    yield ""
    for heading, fact in sentences.facts(result):
        yield f"- {heading}: {code(fact) if heading in 'AB' else text(fact)}"
    for note in result.notes:
        yield f"- {text(clean(note))}"


def code(name: str) -> str:
    """Return a span of code, which no program that shows Markdown takes for markup or a mention."""
    if _SPECIAL.isdisjoint(name) and name.strip() == name != "":
        return f"`{name}`"
    return f"<code>{text(name)}</code>"


def text(name: str) -> str:
    """Return clean text for the middle of a line, with numbered entities in place of markup."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", name)
