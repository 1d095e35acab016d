"""The whole wait-for graph: holders that are certain, probable, or only counted."""

from __future__ import annotations

from unit.builders import blocking

from locktop.collector.extensions.export.wait_graph import wait_graph
from locktop.collector.model import Snapshot


def drawn(snapshot: Snapshot) -> tuple[dict[str, tuple[str, ...]], set[tuple[str, str, str]]]:
    """Return the lines of each node by key, and the arrows with the first word on them."""
    graph = wait_graph(snapshot)
    arrows = {(arrow.start, arrow.end, arrow.lines[0]) for arrow in graph.arrows}
    return {node.key: node.lines for node in graph.nodes}, arrows


def test_a_known_holder_holds() -> None:
    nodes, arrows = drawn(blocking.sampled(holders=(blocking.HOLDER,)))
    assert nodes["thread_100"] == ("charger", "thread 100")
    assert ("thread_200", "lock_10", "waits 20.0 s") in arrows
    assert ("lock_10", "thread_100", "held by") in arrows


def test_a_probable_holder_is_not_certain() -> None:
    nodes, arrows = drawn(blocking.sampled(holders_probable=blocking.PROBABLY))
    assert nodes["thread_100"] == ("charger", "thread 100")
    assert ("lock_10", "thread_100", "probably held by") in arrows
    assert not any(words == "held by" for _, _, words in arrows)


def test_readers_without_names_are_counted() -> None:
    nodes, arrows = drawn(blocking.sampled(readers=2))
    assert nodes["lock_10"] == ("rwlock orders", "held by 2 readers")
    assert {end for _, end, _ in arrows} == {"lock_10"}
