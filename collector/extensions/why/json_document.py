"""The answer as one JSON object. Times are seconds."""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.why.model import Chain, ChainStep, WhyAnswer
from locktop.collector.extensions.why.words import WhyWords
from locktop.collector.sanitize import clean

FORMAT = "locktop.why"
VERSION = 1


def document(answer: WhyAnswer) -> dict[str, Any]:
    """Return the object."""
    words = WhyWords(answer)
    return {
        "format": FORMAT,
        "version": VERSION,
        "scan_s": round(answer.scan_s, 6),
        "hidden": list(answer.hidden),
        "notes": list(map(clean, answer.notes)),
        "chains": [_chain(chain, words) for chain in answer.chains],
    }


def _chain(chain: Chain, words: WhyWords) -> dict[str, Any]:
    return {
        "pid": chain.pid,
        "verdict": chain.verdict,
        "sentence": words.paragraph(chain),
        "steps": [_step(step, words) for step in chain.steps],
        "back_to": chain.back_to if chain.back_to >= 0 else None,
        "doubts": [clean(doubt) for doubt in chain.doubts],
    }


def _step(step: ChainStep, words: WhyWords) -> dict[str, Any]:
    thread, awaited = step.thread, step.awaited
    return {
        "pid": thread.pid,
        "tid": thread.tid,
        "process": words.process(thread.pid),
        "name": clean(thread.name),
        "does": words.does(step),
        "threads_alike": step.threads_alike,
        "at": words.location(step) or None,
        "since_s": (awaited.duration_s or None) if awaited is not None else None,
        "role_of_providers": (awaited.role or None) if awaited is not None else None,
        "providers": sorted(awaited.providers) if awaited is not None else [],
        "other_end": (clean(awaited.other_end) or None) if awaited is not None else None,
    }
