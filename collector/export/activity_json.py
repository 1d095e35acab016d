"""What a thread does now as a JSON object."""

from __future__ import annotations

from typing import Any

from locktop.collector.model import ThreadActivity


def document(now: ThreadActivity) -> dict[str, Any]:
    """Return the object. "for_s" and "stack_age_s" are seconds, "cpu" a share or null;
    "at_least" is of "for_s"."""
    return {
        "tid": now.tid,
        "doing": str(now.doing),
        "call": now.call,
        "what": now.what,
        "for_s": now.duration_s,
        "stack": now.stack,
        "stack_age_s": now.stack_age_s,
        "cpu": now.cpu,
        "at_least": now.is_lower_bound,
    }
