"""The section of the text report about the roots of the present waits, and its key in JSON."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import blocking, scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report


def section(snapshot: Snapshot, width: int = 200) -> list[str]:
    lines = report.render(snapshot, width=width).splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("BLOCKING NOW")), None)
    if begin is None:
        return []
    return lines[begin + 1 : lines.index("", begin)]


def test_the_root_comes_with_what_it_does_and_what_is_behind() -> None:
    assert section(blocking.pool_behind_index()) == [
        "  thread 100 (loader) holds mutex g_index_lock for 13.0 s, taken in journal_write at"
        " /src/store/journal.c:210",
        "    now in read(7 -> /var/lib/x/index) for 3.00 s",
        "    300 threads, 300,000 ms/s behind this; the longest waits 12.0 s",
        "      thread 200 (user-200) for 12.0 s: mutex g_index_lock;"
        " 292 threads, 292,000 ms/s behind this",
        "        292 threads (worker-#) for up to 11.0 s: sem g_pool,"
        " also held by thread 201 (user-201), thread 202 (user-202) and 5 more",
        "      7 threads (user-#) for up to 12.0 s: mutex g_index_lock",
    ]


def test_plain_waits_and_reported_deadlocks_have_no_section() -> None:
    assert section(scenarios.normal()) == []
    assert section(scenarios.deadlock()) == []
    assert section(scenarios.empty()) == []


def test_lines_are_no_wider_than_wanted() -> None:
    assert max(map(len, section(blocking.pool_behind_index(), 80))) <= 80


def test_json_has_the_roots() -> None:
    made = blocking.pool_behind_index()
    (root,) = snapshot_codec.document(made)["blocking"]
    assert root == {
        "kind": "holder", "tids": [blocking.HOLDER], "locks": [blocking.INDEX], "threads": 300,
        "waited_s": 8 * 12.0 + 292 * 11.0, "longest": blocking.FIRST_USER,
    }  # fmt: skip
    assert snapshot_codec.document(replace(made, threads=()))["blocking"] == []
