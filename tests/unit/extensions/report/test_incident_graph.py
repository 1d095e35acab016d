"""The wait-for graph of a report."""

from __future__ import annotations

from unit.builders import blocking, scenarios

from locktop.collector.analysis import blocking_tree, deadlock_report
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.extensions.report.incident_graph import incident_graph
from locktop.collector.model import Snapshot
from locktop.collector.render.graph.deadlock_graph import Graph, Part, graph
from locktop.collector.render.text.context import ReportContext


def drawn(snapshot: Snapshot) -> Graph:
    classified = Classifier().classify(snapshot)
    return incident_graph(ReportContext(classified, None), blocking_tree.find(classified))


def test_a_deadlock_is_drawn_as_by_check() -> None:
    snapshot = Classifier().classify(scenarios.deadlock())
    assert drawn(scenarios.deadlock()) == graph(deadlock_report.reports(snapshot))


def test_a_chain_leads_to_the_root() -> None:
    result = drawn(blocking.pool_behind_index())
    nodes = {node.key: node for node in result.nodes}
    arrows = {(arrow.start, arrow.end): arrow.lines for arrow in result.arrows}
    assert nodes["fan_300"].lines == ("292 threads", "worker-#")
    assert nodes["thread_100"].lines[0] == "loader"
    assert nodes["thread_100"].lines[2].startswith("in read(7 -> /var/lib/x/index)")
    (pool,) = [end for start, end in arrows if start == "fan_300"]
    assert (pool, "thread_200") in arrows
    (index,) = [end for start, end in arrows if start == "thread_200"]
    assert arrows[index, "thread_100"][0] == "held for 13.0 s by"
    assert all(start in nodes and end in nodes for start, end in arrows)


def test_a_large_graph_is_cut() -> None:
    result = drawn(scenarios.many())
    assert result.nodes[-1].lines[0].startswith("and ")
    assert len(result.nodes) < 100


def test_a_calm_process_has_no_graph() -> None:
    assert drawn(scenarios.empty()).nodes == ()


def test_a_probable_holder_is_drawn_as_one() -> None:
    result = drawn(blocking.sampled(holders_probable=blocking.PROBABLY))
    nodes = {node.key: node for node in result.nodes}
    (arrow,) = [arrow for arrow in result.arrows if arrow.start == "lock_10"]
    assert (arrow.end, arrow.lines) == ("thread_100", ("probably held by",))
    assert nodes["thread_100"].lines[2] == "in recvfrom(3) for 21.0 s"
    assert nodes["thread_100"].part is Part.BEHIND  # a dashed line, as it may be another thread


def test_readers_without_names_are_counted() -> None:
    result = drawn(blocking.sampled(readers=2))
    (lock,) = [node for node in result.nodes if node.key == "lock_10"]
    assert lock.lines == ("rwlock orders", "held by 2 readers")
