"""The library counts and times the function calls of instrumented programs."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from support import tool
from support.call_trees import INSTRUMENTED, by_path, check_sums, counts, scanned, tree_of
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.extensions.calls.model import calls_of
from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.symbols.stack_frames import UNLOADED

ROUNDS = 10
COUNTED = ("most", "some", "little")


def scanned_in(pid: int, path: str) -> Snapshot:
    """Return a snapshot of the moment when a process's first thread is in a call."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        snapshot = scanned(pid)
        node = by_path(snapshot, tree_of(snapshot, pid)).get(path)
        if node is not None and node.active:
            return snapshot
    raise AssertionError(f"the process never was in {path}")


def test_counts_are_exact_and_times_are_those_of_the_program(start_target: StartTarget) -> None:
    """A busy neighbour may interrupt the program between its own clock and ours, in some rounds."""
    target = start_target("call_times", flags=INSTRUMENTED)
    before, before_s = [0.0] * 3, [0.0] * 3
    for _ in range(ROUNDS):
        truth = target.truth()
        snapshot = scanned_in(target.pid, "main/hear")
        tree = tree_of(snapshot, target.pid)
        nodes = by_path(snapshot, tree)
        found = [nodes[f"main/batch/{name}"] for name in COUNTED]
        assert [node.count for node in found] == truth["counts"]
        assert all(
            node.own_s > 0.999 * seconds
            for node, seconds in zip(found, truth["seconds"], strict=True)
        )
        assert nodes["main"].active
        assert nodes["main/hear"].active
        assert not nodes["main/batch"].active
        assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)
        check_sums(snapshot)
        of_round = [node.own_s - own_s for node, own_s in zip(found, before, strict=True)]
        truth_s = [s - earlier for s, earlier in zip(truth["seconds"], before_s, strict=True)]
        if of_round == pytest.approx(truth_s, rel=0.01):
            return
        before, before_s = [node.own_s for node in found], truth["seconds"]
        target.go_on()
    pytest.fail(f"{of_round} is never {truth_s}")


def test_a_short_call_is_only_counted(start_target: StartTarget) -> None:
    limit = {"LOCKTOP_CALLS_MIN_US": "1000"}
    target = start_target("call_times", flags=INSTRUMENTED, environment=limit)
    truth = target.truth()
    snapshot = scanned(target.pid)
    nodes = by_path(snapshot, tree_of(snapshot, target.pid))
    most, little, whole = (nodes[f"main/batch{name}"] for name in ("/most", "/little", ""))
    assert [most.count, little.count] == [truth["counts"][0], truth["counts"][2]]
    assert most.short_count == 0
    # A busy neighbour may make a call longer.
    assert 0 < little.short_count <= little.count
    short_s = sum(truth["seconds"]) - sum(nodes[f"main/batch/{name}"].own_s for name in COUNTED)
    assert short_s > 0
    assert whole.own_s > 0.9 * short_s
    check_sums(snapshot)


def test_only_the_named_functions_are_counted(start_target: StartTarget) -> None:
    names = {"LOCKTOP_CALLS_MATCH": "mo*, main ,no_such_function"}
    target = start_target("call_times", flags=INSTRUMENTED, environment=names)
    truth = target.truth()
    snapshot = scanned(target.pid)
    nodes = by_path(snapshot, tree_of(snapshot, target.pid))
    assert counts(nodes) == {"main": 1, "main/most": truth["counts"][0]}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (
            "outer::",
            {
                "use",
                "use/Store",
                "use/add<double>",
                "use/add<long>",
                "use/get",
                "use/work",
                "use/~Store",
            },
        ),
        ("outer::inner::work,hidden", {"work", "hidden"}),
        ("outer::Store::*", {"Store", "add<double>", "add<long>", "get", "~Store"}),
        ("outer::use,outer::Store::~Store", {"use", "use/~Store"}),
        ("outer::Store::Store,outer::inner", {"Store"}),
        ("thr*", {"throws" + n * "/throws" for n in range(4)}),
    ],
)
def test_names_are_compared_by_component(
    start_target: StartTarget, names: str, found: set[str]
) -> None:
    target = start_target(
        "call_names", flags=INSTRUMENTED, environment={"LOCKTOP_CALLS_MATCH": names}
    )
    rounds = target.truth()["rounds"]
    snapshot = scanned(target.pid)
    nodes = by_path(snapshot, tree_of(snapshot, target.pid))
    assert {
        "/".join(part.rpartition("::")[2] for part in path.split("/")) for path in nodes
    } == found
    assert {node.count for node in nodes.values()} == {rounds}


def test_a_program_without_symbols_counts_nothing_by_name(
    start_target: StartTarget,
) -> None:
    names = {"LOCKTOP_CALLS_MATCH": "most"}
    target = start_target("call_times", flags=(*INSTRUMENTED, "-s"), environment=names)
    target.truth()
    snapshot = scanned(target.pid)
    assert calls_of(snapshot) == ()
    assert any(note.startswith("LOCKTOP_CALLS_MATCH") for note in snapshot.notes)


def test_exceptions_end_the_calls_that_they_leave(start_target: StartTarget) -> None:
    target = start_target("call_names", flags=INSTRUMENTED)
    rounds = target.truth()["rounds"]
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, target.pid)
    found = counts(by_path(snapshot, tree))
    assert found["main/run/plain_name"] == found["main/run/catches/plain_name"] == rounds
    thrown = "main/run/catches" + 4 * "/throws"
    assert found[thrown] == rounds
    assert thrown + "/throws" not in found
    assert (tree.left_out, tree.unmatched) == (0, 0)
    check_sums(snapshot)


def test_the_wait_for_locks_inside_of_a_call(start_target: StartTarget) -> None:
    target = start_target("call_waits", flags=INSTRUMENTED)
    target.expect("in mid-wait")
    snapshot = scanned(target.pid)
    (tree,) = [tree for tree in calls_of(snapshot) if tree.name == "waiter"]
    nodes = by_path(snapshot, tree)
    path = "wait_often/one_round/works/takes"
    waiting = nodes[path]
    assert waiting.active
    assert 0 < waiting.wait_s <= waiting.total_s
    assert nodes["wait_often"].wait_s == pytest.approx(waiting.wait_s)
    target.go_on()
    truth = target.truth()
    snapshot = scanned(target.pid)
    nodes = by_path(snapshot, tree_of(snapshot, truth["tid"]))
    assert 0.06 < nodes[path].wait_s <= nodes[path].total_s
    assert nodes["wait_often/one_round/works"].total_s <= truth["seconds"]
    assert nodes["wait_often/one_round/works"].wait_s == nodes[path].wait_s
    condition = nodes["wait_often/one_round/waits_for_condition"]
    assert condition.total_s > 0.02
    assert condition.wait_s < condition.total_s
    check_sums(snapshot)


def test_functions_of_unloaded_libraries_stay_apart(
    start_target: StartTarget, compiler: Compiler
) -> None:
    library = compiler.program("call_library", "-shared", "-fPIC", *INSTRUMENTED)
    again = library.with_name("again.so")
    again.write_bytes(library.read_bytes())
    for names in ({}, {"LOCKTOP_CALLS_MATCH": "use,library_*"}):
        target = start_target(
            "call_unloads", str(library), str(again), flags=INSTRUMENTED, environment=names
        )
        rounds = target.truth()["rounds"]
        snapshot = scanned(target.pid)
        tree = tree_of(snapshot, target.pid)
        (use,) = [node for node in tree.nodes if node.parent is None and node.count == 2]
        works = [node for node in tree.nodes if node.parent == tree.nodes.index(use)]
        assert [node.count for node in works] == [rounds, rounds]
        leaves = [node for node in tree.nodes if node.count == 2 * rounds]
        assert [node.parent for node in leaves] == [tree.nodes.index(node) for node in works]
        named = {snapshot.stacks[node.function][-1].module for node in (*works, *leaves)}
        assert named == {UNLOADED}
        check_sums(snapshot)


def test_sums_hold_while_calls_go_on(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    target.truth()
    source = attach(target.pid, only_exact=True)
    source.want_section("calls", True)
    try:
        seen = [source.scan()]
        target.go_on()
        seen += [source.scan() for _ in range(30)]
    finally:
        source.close()
    traced = []
    for snapshot in seen:
        check_sums(snapshot)
        traced += [tree.traced_s for tree in calls_of(snapshot) if tree.tid == target.pid]
    assert traced == sorted(traced)


def test_calls_are_counted_from_the_moment_when_they_are_wanted(
    start_target: StartTarget,
) -> None:
    """The thread is in mid-call when the counting begins, ends, and begins again."""
    target = start_target(
        "call_shapes", "switched", flags=INSTRUMENTED, environment={"LOCKTOP_CALLS": "off"}
    )
    target.expect("inner")
    assert [tree.nodes for tree in calls_of(scanned(target.pid))] == []
    assert _set_calls(target, "on") == f"{target.pid} (call_shapes-fin): function calls off -> on"
    target.go_on()
    target.truth()
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, target.pid)
    assert counts(by_path(snapshot, tree)) == {"leaf": 2}
    assert tree.unmatched == 3  # hear(), switched_inner() and switched()
    _set_calls(target, "off")
    before = scanned(target.pid)
    again = scanned(target.pid)
    assert not any(node.active for tree in calls_of(again) for node in tree.nodes)
    assert [tree.traced_s for tree in calls_of(before)] == [
        pytest.approx(tree.traced_s, rel=1e-6) for tree in calls_of(again)
    ]


def _set_calls(target: Target, value: str) -> str:
    command = [tool.COMMAND, "ctl", "-p", str(target.pid), "--calls", value]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_snapshot_has_the_calls_on_request(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    target.truth()
    assert tool.snapshot(target.pid)["calls"] == []
    command = [tool.COMMAND, "snapshot", "-p", str(target.pid), "--calls"]
    document = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    (tree,) = document["calls"]
    names = [document["stacks"][str(node["function"])][-1]["function"] for node in tree["nodes"]]
    assert names == ["main", "batch", *COUNTED, "say", "hear"]
    assert [node["parent"] for node in tree["nodes"]] == [None, 0, 1, 1, 1, 0, 0]
