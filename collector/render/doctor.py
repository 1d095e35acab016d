"""The doctor's answers as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from locktop.collector.model.diagnosis import Check, Diagnosis, Sight
from locktop.collector.sanitize import clean

_LONGEST_TEXT = 2000
_HEADS = {
    Sight.FULL: "All of {} is visible:",
    Sight.LIMITED: "Only a part of {} is visible:",
    Sight.NONE: "locktop cannot watch {}:",
}


def doctor_text(diagnosis: Diagnosis, width: int) -> str:
    """Return the diagnosis as lines of at most ``width`` characters."""
    return "\n".join(_lines(diagnosis, width)) + "\n"


def _lines(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    if diagnosis.pid is None:
        yield "What this machine allows:"
    else:
        yield _HEADS[diagnosis.sight].format(f"process {diagnosis.pid} ({diagnosis.comm})")
    widest = max(len(check.name) for check in diagnosis.checks)
    for check in diagnosis.checks:
        head = f"  {check.sight.value:<8} {check.name:<{widest}}  "
        yield from _hanging(head, check.fact, width)
        if check.remedy:
            yield from _hanging(f"{'':<{len(head)}}-> ", check.remedy, width)


def _hanging(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        clean(text, _LONGEST_TEXT),
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    )


def doctor_json(diagnosis: Diagnosis) -> bytes:
    """Return the diagnosis as a JSON document (docs/doctor.md has its keys)."""
    document = {
        "format": "locktop.doctor",
        "version": 1,
        "pid": diagnosis.pid,
        "comm": diagnosis.comm or None,
        "sight": diagnosis.sight.value,
        "checks": [_check(check) for check in diagnosis.checks],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _check(check: Check) -> dict[str, str | None]:
    return {
        "name": check.name,
        "sight": check.sight.value,
        "fact": check.fact,
        "remedy": check.remedy or None,
    }
