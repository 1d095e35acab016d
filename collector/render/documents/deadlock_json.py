"""A deadlock's report as a JSON object: times in seconds, names and places as text and as parts."""

from __future__ import annotations

from typing import Any

from locktop.collector.model import (
    DeadlockReport,
    Follower,
    Frame,
    LockingStep,
    LockName,
    Member,
    Taken,
)
from locktop.collector.render.documents.snapshot_codec import activity_document
from locktop.collector.render.words import deadlock as words
from locktop.collector.render.words.source_location import full_location


def document(report: DeadlockReport) -> dict[str, Any]:
    """Return the object. Keys may be added; those that are there keep their meaning.

    "order" has the ids of the locks in the order that would avoid the deadlock, [] where there is
    none. "advice" and "to_do" are sentences for a person.
    """
    avoidance = report.avoidance
    return {
        "certain": report.certain,
        "doubt": report.doubt,
        "since_s": report.since_s,
        "at_least": report.is_lower_bound,
        "since": report.since,
        "headline": words.headline(report),
        "threads": [_member(member) for member in report.circle],
        "behind": [_follower(follower) for follower in report.behind],
        "order": list(avoidance.order),
        "change": _step(avoidance.change) if avoidance.change is not None else None,
        "advice": list(words.avoiding(report)),
        "to_do": list(words.to_do(report)),
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        "tid": member.tid,
        "name": member.name,
        "waits_for": _lock(member.waits_for),
        "for_s": member.duration_s,
        "at": _location(member.at),
        "stack": member.stack_id,
        "held_by": member.held_by,
        "how": str(member.reason),
        "taken_at": _location(member.taken_at),
        "holder_now": activity_document(member.now) if member.now is not None else None,
        "has": [_taken_document(taken) for taken in member.has],
    }


def _taken_document(taken: Taken) -> dict[str, Any]:
    return {
        "lock": _lock(taken.lock),
        "for_s": taken.duration_s,
        "at_least": taken.is_lower_bound,
        "at": _location(taken.at),
        "shared": taken.shared,
        "wanted_by": list(taken.wanted_by),
    }


def _follower(follower: Follower) -> dict[str, Any]:
    return {
        "tid": follower.tid,
        "name": follower.name,
        "waits_for": _lock(follower.waits_for) if follower.waits_for is not None else None,
        "held_by": list(follower.holders),
        "for_s": follower.duration_s,
        "at": _location(follower.at),
    }


def _step(step: LockingStep) -> dict[str, Any]:
    return {
        "tid": step.tid,
        "has": step.has,
        "has_at": _location(step.has_at),
        "wants": step.wants,
        "wants_at": _location(step.wants_at),
    }


def _lock(lock: LockName) -> dict[str, Any]:
    kind = str(lock.kind) if lock.kind is not None else None
    return {"id": lock.id, "kind": kind, "name": lock.name}


def _location(frame: Frame | None) -> str | None:
    return full_location(frame) if frame is not None else None
