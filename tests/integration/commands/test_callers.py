"""`locktop callers`: the call tree of a program's waits, against the program's own counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import requirements, tool
from support.screen import Screen
from support.targets import StartTarget

Need = Callable[..., Path]


def callers(*arguments: str | int) -> dict[str, Any]:
    done = tool.run("callers", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def paths(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every node by its path: the names from the program's own functions on."""
    found = {}
    path: list[dict[str, Any]] = []
    for node in document["nodes"]:
        del path[node["depth"] :]
        path.append(node)
        own = [step["function"] for step in path if step["module"] != requirements.LIBC]
        found["/".join(own)] = node
    return found


SERVE = "caller_loop/serve"
GET, PUT = f"{SERVE}/get/take", f"{SERVE}/put/take"
WALK = f"{SERVE}/walk/walk/walk/take"


def test_each_path_has_the_number_of_waits_that_the_program_counted(
    start_target: StartTarget,
) -> None:
    target = start_target("waits_down_call_tree")
    truth = target.truth()
    found = paths(callers("-p", target.pid, "--weight", "count"))
    for path, count in ((GET, "gets"), (PUT, "puts"), (WALK, "walks")):
        assert (found[path]["value"], found[path]["own"]) == (truth[count], truth[count])
    assert found[f"{GET}/mutex g_cache"]["value"] == truth["gets"]
    assert found[f"{WALK}/mutex g_table"]["value"] == truth["walks"]
    whole = truth["gets"] + truth["puts"] + truth["walks"]
    assert (found[SERVE]["value"], found[SERVE]["own"]) == (whole, 0)
    assert found[GET]["place"]["file"].endswith("waits_down_call_tree.c")


def test_each_path_has_the_time_that_the_program_measured(start_target: StartTarget) -> None:
    target = start_target("waits_down_call_tree")
    truth = target.truth()
    document = callers("-p", target.pid)
    found = paths(document)
    for path, time in ((GET, "get_s"), (PUT, "put_s"), (WALK, "walk_s")):
        assert found[path]["value"] == pytest.approx(truth[time], rel=0.05)
    assert not any("rest" in path for path in found)
    idle = paths(callers("-p", target.pid, "--idle", "--weight", "count"))
    rest = next(node for path, node in idle.items() if path.endswith("sleeper_loop/rest"))
    assert (rest["value"], rest["idle"], rest["own_idle"]) == (0, truth["rests"], truth["rests"])


def test_the_butterfly_of_a_function_has_its_three_callers(start_target: StartTarget) -> None:
    target = start_target("waits_down_call_tree")
    truth = target.truth()
    made = callers("-p", target.pid, "--weight", "count", "--function", "take")["butterfly"]
    assert {wing["function"]: wing["value"] for wing in made["callers"]} == {
        "get": truth["gets"],
        "put": truth["puts"],
        "walk": truth["walks"],
    }
    walk = callers("-p", target.pid, "--weight", "count", "--function", "walk")["butterfly"]
    assert walk["value"] == truth["walks"]


def test_a_saved_snapshot_has_the_same_call_tree(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("waits_down_call_tree")
    target.truth()
    live = paths(callers("-p", target.pid, "--weight", "count"))
    for form in ("json", "msgpack"):
        path = tmp_path / f"saved.{form}"
        done = tool.run("snapshot", "-p", target.pid, "--format", form, "-o", str(path))
        assert done.returncode == 0, done.stderr
        saved = paths(callers(str(path), "--weight", "count"))
        assert {name: node["value"] for name, node in saved.items()} == {
            name: node["value"] for name, node in live.items()
        }


def test_on_a_terminal_the_view_opens_on_a_process(start_target: StartTarget, need: Need) -> None:
    target = start_target("waits_down_call_tree")
    truth = target.truth()
    counted = ("callers", "-p", target.pid, "--weight", "count")
    with Screen(need("tmux"), *counted, width=100, height=30) as screen:
        whole = truth["gets"] + truth["puts"] + truth["walks"]
        screen.until(lambda text: f"By waits {whole} " in text, "the number of waits")
        screen.until(lambda text: "get > take" in text, "the paths")
        screen.press("/", "w", "a", "l", "k", "Enter")
        screen.until(lambda text: "get > take" not in text, "only the matching path")
        # One Escape at a time: to a terminal, two of them are another key.
        screen.press("Escape")
        screen.until(lambda text: "get > take" in text, "all paths again")
        screen.press("Escape")
        screen.until(lambda text: "Locks by" in text, "the monitor beneath")
        screen.press("c")
        screen.until(lambda text: "By time waited" in text, "the view again")
        screen.press("q")
        assert screen.status() == 0


def test_on_a_terminal_the_view_opens_on_a_file(need: Need, tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text(
        "Type;Function Name;Inclusive Samples;Exclusive Samples;Inclusive Samples %\n"
        "Root;main;1.200;200;100,00\n"
        "Callee;parse;1.000;1.000;83,33\n"
    )
    with Screen(need("tmux"), "callers", str(report), width=80, height=24) as screen:
        text = screen.until(lambda text: "By samples 1.20k" in text, "the samples")
        assert "an estimate: no whole stacks" in text
        assert "83%" in text
        screen.press("q")
        assert screen.status() == 0
