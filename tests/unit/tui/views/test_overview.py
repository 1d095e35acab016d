"""The overview says no more than the library knows."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.overview import Room, overview_lines
from locktop.tui.views.styled_line import line_text


def texts(snapshot: Snapshot) -> list[str]:
    return [line_text(line) for line in overview_lines(SnapshotIndex(snapshot), (), Room(120, 30))]


def starting(snapshot: Snapshot, begin: str) -> str:
    return next(text for text in texts(snapshot) if text.strip().startswith(begin))


def test_a_dormant_library_knows_no_waits() -> None:
    calm = replace(scenarios.empty(), level="dormant")
    for begin in ("threads", "Worst lock", "Longest chain", "Most waited for"):
        line = starting(calm, begin)
        assert line.endswith("waits are not known: the library is dormant"), line


def test_no_wait_is_a_statement_of_the_library_alone() -> None:
    calm = scenarios.empty()
    known = starting(replace(calm, complete=True), "Worst lock")
    assert known.endswith("no thread waits for a lock now")
    unknown = starting(replace(calm, complete=False), "Worst lock")
    assert unknown.endswith("no wait for a lock is observed now")


def test_the_holder_is_that_of_the_headline() -> None:
    """The lock may not name the holder that the longest wait has noted."""
    normal = scenarios.normal()
    unnamed = replace(normal, locks=tuple(replace(one, holders=()) for one in normal.locks))
    assert starting(normal, "held by").split()[:3] == starting(unnamed, "held by").split()[:3]


def test_the_longest_chain_says_that_it_closes() -> None:
    deadlock = texts(scenarios.deadlock())
    title = next(number for number, text in enumerate(deadlock) if "Longest chain" in text)
    assert deadlock[title] == " Longest chain of 3 threads, a circle (key 4)"
    links = deadlock[title + 1 : title + 4]
    assert [text.replace("→", "").split()[0] for text in links] == [
        "philosopher-2", "philosopher-0", "philosopher-1",
    ]  # fmt: skip
    assert deadlock[title + 4] == "  → philosopher-2: the chain closes here"
    assert not any("closes" in text for text in texts(scenarios.normal()))


def test_the_end_of_a_chain_says_in_which_call_the_thread_is() -> None:
    chain = texts(scenarios.normal())
    end = next(number for number, text in enumerate(chain) if text.startswith("  → "))
    assert chain[end].startswith("  → journal now in fsync(")


def test_ended_threads_are_not_counted() -> None:
    normal = scenarios.normal()
    ended = [replace(one, tid=one.tid + 10_000, alive=False) for one in scenarios.empty().threads]
    assert ended
    more = replace(normal, threads=(*normal.threads, *ended))
    assert starting(more, "threads") == starting(normal, "threads")
