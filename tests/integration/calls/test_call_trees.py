"""The library counts and times the function calls of instrumented programs."""

from __future__ import annotations

import json
import subprocess

import pytest
from support import tool
from support.call_trees import INSTRUMENTED, by_path, check_sums, counts, scanned, tree_of
from support.targets import StartTarget, Target

COUNTED = ("most", "some", "little")


def test_counts_are_exact_and_times_are_those_of_the_program(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    for _ in range(2):
        truth = target.truth()
        snapshot = scanned(target.pid)
        tree = tree_of(snapshot, target.pid)
        nodes = by_path(snapshot, tree)
        found = [nodes[f"main/batch/{name}"] for name in COUNTED]
        assert [node.count for node in found] == truth["counts"]
        for node, seconds in zip(found, truth["seconds"], strict=True):
            assert node.own_s == pytest.approx(seconds, rel=0.02)
        whole = nodes["main/batch"]
        # The hooks themselves take time, and a busy neighbour may interrupt them.
        assert whole.total_s == pytest.approx(sum(truth["seconds"]), rel=0.05)
        assert nodes["main"].active
        assert nodes["main/hear"].active
        assert not whole.active
        assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)
        check_sums(snapshot)
        target.go_on()


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
    assert little.short_count > 0.9 * little.count
    short_s = sum(truth["seconds"]) - sum(nodes[f"main/batch/{name}"].own_s for name in COUNTED)
    assert short_s > 0
    assert whole.own_s == pytest.approx(short_s, rel=0.05)
    check_sums(snapshot)


def test_only_the_named_functions_are_counted(start_target: StartTarget) -> None:
    names = {"LOCKTOP_CALLS_MATCH": "mo*,main,no_such_function"}
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
    assert snapshot.calls == ()
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


def test_calls_are_counted_from_the_moment_when_they_are_wanted(
    start_target: StartTarget,
) -> None:
    """The thread is in mid-call when the counting begins, ends, and begins again."""
    target = start_target(
        "call_shapes", "switched", flags=INSTRUMENTED, environment={"LOCKTOP_CALLS": "off"}
    )
    target.expect("inner")
    assert [tree.nodes for tree in scanned(target.pid).calls] == []
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
    assert not any(node.active for tree in again.calls for node in tree.nodes)
    assert [tree.traced_s for tree in before.calls] == [
        pytest.approx(tree.traced_s, rel=1e-6) for tree in again.calls
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
    assert [node["parent"] for node in tree["nodes"]] == [-1, 0, 1, 1, 1, 0, 0]
