"""The report of a real deadlock: in each format, in a file, and on a small screen."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import tool
from support.screen import Screen
from support.targets import StartTarget, Target

Need = Callable[..., Path]
#: The lock that each thread took first, and the lock that the thread waits for.
TOOK = {"alice": "alpha", "bob": "beta", "carol": "gamma"}
WANTS = {"alice": "beta", "bob": "gamma", "carol": "alpha"}


@pytest.fixture
def ring(start_target: StartTarget) -> tuple[Target, dict[str, int]]:
    """Three deadlocked threads, and their tids by name."""
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    return target, target.truth()


def test_check_prints_the_line_first_and_then_the_report(
    ring: tuple[Target, dict[str, int]],
) -> None:
    target, tids = ring
    whole = tool.run("check", "-p", target.pid)
    first, blank, headline, *_ = whole.stdout.splitlines()
    assert first.startswith(
        f"deadlock: 3 threads of ring_of_three {target.pid} wait for each other, for "
    )
    assert first.endswith(": alice -> bob -> carol -> alice")
    assert (blank, headline[:45]) == ("", "DEADLOCK: 3 threads wait for each other, for ")
    text = " ".join(whole.stdout.split())
    for name, tid in tids.items():
        waits = f"{name} ({tid}) waits for mutex g_{WANTS[name]}_lock for [0-9.]+ m?s, in {name}_w"
        assert re.search(waits.replace("(", r"\(").replace(")", r"\)"), text), text
        assert f"holds mutex g_{TOOK[name]}_lock for" in text
        assert f"{name}_wants_second at ring_of_three.c:" in text
    assert "WHAT WOULD AVOID IT Take mutex g_" in text
    assert "The only way out is to end the process" in text
    line = tool.run("check", "-p", target.pid, "--format", "line")
    assert (line.returncode, line.stdout.count("\n")) == (1, 1)
    quiet = tool.run("check", "-p", target.pid, "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", "")


def test_a_check_without_a_deadlock_names_the_lock_and_its_holder(
    start_target: StartTarget,
) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    done = tool.run("check", "-p", target.pid)
    first, rest = done.stdout.split("\n", 1)
    assert (
        first
        == f"no deadlock found: hot_index_lock {target.pid}, 26 threads, 24 waiting for a lock"
    )
    text = " ".join(rest.split())
    assert re.match(
        r"24 threads wait for mutex g_index_lock, the longest for \S+ m?s \(since 20", text
    )
    assert "indexer holds it for" in text
    assert "taken at rebuild_index hot_index_lock.c:22" in text
    assert "in read(3 -> pipe:" in text
    assert done.returncode == 0


def test_the_proposed_order_reverses_one_thread(ring: tuple[Target, dict[str, int]]) -> None:
    target, tids = ring
    done = tool.run("check", "-p", target.pid, "--json")
    document = json.loads(done.stdout)
    (report,) = document["reports"]
    names = {lock["id"]: lock["name"] for lock in document["locks"]}
    order = [names[lock] for lock in report["order"]]
    (reversed_thread,) = [
        name
        for name in TOOK
        if order.index(f"g_{TOOK[name]}_lock") > order.index(f"g_{WANTS[name]}_lock")
    ]
    assert report["change"]["tid"] == tids[reversed_thread]
    assert report["change"]["has_at"].startswith(f"{reversed_thread}_takes_first at ")
    assert report["change"]["wants_at"].startswith(f"{reversed_thread}_wants_second at ")
    assert document["deadlocked"] is True
    assert document["finding"].startswith("deadlock: ")


def test_a_graph_goes_to_the_file_and_the_line_to_the_output(
    ring: tuple[Target, dict[str, int]], need: Need, tmp_path: Path
) -> None:
    target, tids = ring
    path = tmp_path / "deadlock.dot"
    command = ("check", "-p", target.pid, "--format", "dot", "-o", str(path))
    done = tool.run(*command)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("deadlock: 3 threads")
    assert done.stdout.count("\n") == 1
    dot = need("dot", "graphviz")
    plain = subprocess.run([dot, "-Tplain", path], check=True, capture_output=True, text=True)
    assert plain.stderr == ""
    drawn = [line.split()[:3] for line in plain.stdout.splitlines()]
    nodes = {words[1] for words in drawn if words[0] == "node"}
    assert {f"thread_{tid}" for tid in tids.values()} <= nodes
    assert len(nodes) == 6
    arrows = [words[1:] for words in drawn if words[0] == "edge"]
    assert len(arrows) == 6
    again = tool.run(*command)
    assert again.returncode == 2, "the file exists"
    assert "--force" in again.stderr
    mermaid = tool.run("check", "-p", target.pid, "--format", "mermaid")
    assert mermaid.stdout.startswith("flowchart LR\n")
    assert mermaid.stdout.count(" -->|") == 6


def test_without_a_deadlock_each_format_is_valid_and_empty(start_target: StartTarget) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    results = {
        form: tool.run("check", "-p", target.pid, "--format", form)
        for form in ("text", "line", "json", "dot", "mermaid")
    }
    assert {done.returncode for done in results.values()} == {0}
    assert results["text"].stdout.startswith("no deadlock found: ")
    assert results["line"].stdout.count("\n") == 1
    assert json.loads(results["json"].stdout)["reports"] == []
    assert '"no deadlock"' in results["dot"].stdout
    assert '"no deadlock"' in results["mermaid"].stdout
    both = tool.run("check", "-p", target.pid, "--json", "--format", "dot")
    assert (both.returncode, both.stdout) == (2, "")


@pytest.mark.parametrize(("scenario", "status"), [("inversion", 1), ("gate", 0)])
def test_potential_deadlocks_count_only_with_the_option(
    scenario: str, status: int, start_target: StartTarget
) -> None:
    target = start_target("mutex_orders", scenario)
    target.expect("ok")
    assert tool.run("check", "-p", target.pid).returncode == 0
    done = tool.run("check", "-p", target.pid, "--potential")
    assert done.returncode == status, done.stdout + done.stderr
    reported = "took in different orders: mutex g_a, mutex g_b (high confidence)" in done.stdout
    assert reported == bool(status)


def test_the_text_report_of_a_snapshot_has_the_same_report(
    ring: tuple[Target, dict[str, int]],
) -> None:
    target, _ = ring
    page = " ".join(tool.run("snapshot", "-p", target.pid, "--format", "text").stdout.split())
    assert "DEADLOCK: 3 threads wait for each other, for" in page
    assert "WHAT WOULD AVOID IT Take mutex g_" in page


def test_a_small_screen_scrolls_through_the_whole_report(
    ring: tuple[Target, dict[str, int]], need: Need
) -> None:
    target, tids = ring
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        screen.until(lambda seen: "DEADLOCK for" in seen, "the banner")
        screen.press("d")
        screen.until(lambda seen: f"alice ({tids['alice']})" in seen, "the report's first page")
        assert "What to do now" not in screen.text()
        while "What to do now" not in (seen := screen.text()):
            at = first_line(seen)
            screen.press("PageDown")
            screen.until(lambda text, at=at: is_further(text, at), "the next page")  # type: ignore[misc]
        screen.press("End")
        screen.until(lambda text: "locktop snapshot -p" in text, "the end of the report")
        screen.press("q")
        assert screen.status() == 0


def is_further(text: str, at: int) -> bool:
    """Return whether the page begins after line ``at``, or shows the end.

    The page may be half painted.
    """
    return first_line(text) > at or "What to do now" in text


def first_line(text: str) -> int:
    """Return the number of the first shown line, from the title of the panel."""
    found = re.search(r" (\d+)-\d+ of \d+ ─", text)
    return int(found[1]) if found else 0
