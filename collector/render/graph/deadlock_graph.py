"""Deadlocks as nodes and arrows with words on them: what DOT and Mermaid have in common.

An arrow leads from a thread to the lock that it waits for. Another arrow leads from that lock to
its holder.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from locktop.collector.model import BlockReason, DeadlockReport, LockName, Member
from locktop.collector.render.words import deadlock as words
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import counted, lasting
from locktop.collector.sanitize import clean

#: More threads behind one circle make no drawing that anybody reads.
_MAX_BEHIND = 30
#: Characters of a line on a drawing: the names of templates have thousands.
_LONGEST = 80


class Part(Enum):
    """The kind of thing that a node stands for."""

    CIRCLE = "circle"  # a thread of a circle
    BEHIND = "behind"  # a thread behind one, or how many more there are
    LOCK = "lock"


class GraphNode(Struct, frozen=True):
    """``key`` is a word of letters, digits and underscores; ``lines`` are a stranger's text."""

    key: str
    part: Part
    lines: tuple[str, ...]


class Arrow(Struct, frozen=True):
    """Between two keys."""

    start: str
    end: str
    lines: tuple[str, ...]


class Graph(Struct, frozen=True):
    """Each node and arrow once, those of the circles first."""

    title: str
    nodes: tuple[GraphNode, ...]
    arrows: tuple[Arrow, ...]


def graph(reports: Iterable[DeadlockReport]) -> Graph:
    """Return one graph of all of them."""
    all_reports = list(reports)
    nodes: dict[str, GraphNode] = {}
    arrows: dict[Arrow, None] = {}
    for report in all_reports:
        for member in report.circle:
            _add(nodes, _thread(member.tid, member.name, Part.CIRCLE))
        for member in report.circle:
            _add(nodes, _lock(member.waits_for))
            if member.reason is BlockReason.ABANDONED and member.held_by:
                name = report.names.get(member.held_by, "")
                _add(nodes, _thread(member.held_by, name, Part.BEHIND, "has ended"))
            arrows |= dict.fromkeys(_arrows(member))
    for report in all_reports:
        _add_behind(report, nodes, arrows)
    title = "; ".join(words.headline(report) for report in all_reports) or "no deadlock"
    return Graph(clean(title, 1000), tuple(nodes.values()), tuple(arrows))


def _add(nodes: dict[str, GraphNode], node: GraphNode) -> None:
    nodes.setdefault(node.key, node)


def _thread(tid: int, name: str, part: Part, more: str = "") -> GraphNode:
    return GraphNode(f"thread_{tid}", part, _lines(name, f"thread {tid}", more))


def _lock(lock: LockName) -> GraphNode:
    return GraphNode(f"lock_{lock.id}", Part.LOCK, _lines(words.lock(lock)))


def _arrows(member: Member) -> tuple[Arrow, ...]:
    thread, lock = f"thread_{member.tid}", f"lock_{member.waits_for.id}"
    location = full_location(member.at) if member.at is not None else ""
    taken = words.taken_at(member)
    waits = Arrow(
        thread, lock, _lines(f"waits {lasting(member.duration_s, member.is_lower_bound)}", location)
    )
    has = Arrow(lock, f"thread_{member.held_by}", _lines(words.SHORTLY[member.reason], taken))
    return (waits, has) if member.held_by else (waits,)


def _add_behind(
    report: DeadlockReport, nodes: dict[str, GraphNode], arrows: dict[Arrow, None]
) -> None:
    for follower in report.behind[:_MAX_BEHIND]:
        node = _thread(follower.tid, follower.name, Part.BEHIND)
        _add(nodes, node)
        if follower.waits_for is not None:
            lock = _lock(follower.waits_for)
            _add(nodes, lock)
            waits = f"waits {lasting(follower.duration_s, follower.is_lower_bound)}"
            arrows[Arrow(node.key, lock.key, _lines(waits))] = None
            for tid in follower.holders:
                if f"thread_{tid}" in nodes:
                    arrows[Arrow(lock.key, f"thread_{tid}", _lines("held by"))] = None
    left_out = len(report.behind) - _MAX_BEHIND
    if left_out > 0:
        key = f"more_{report.circle[0].tid}"
        _add(nodes, GraphNode(key, Part.BEHIND, (f"{counted(left_out, 'thread')} more behind",)))


def _lines(*texts: str) -> tuple[str, ...]:
    return tuple(clean(text, _LONGEST) for text in texts if text)
