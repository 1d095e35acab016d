"""The overview of real programs: where the longest chain ends; and the text report of W."""

from __future__ import annotations

import re
from pathlib import Path

from support.pty_tool import PtyTool
from support.targets import StartTarget
from support.tool import COMMAND

SIZE = (80, 50)


def test_the_chain_of_a_deadlock_says_that_it_closes(start_target: StartTarget) -> None:
    target = start_target("accounts_deadlock")
    target.expect("ready")
    with PtyTool([COMMAND, "-p", str(target.pid)], SIZE) as tool:
        tool.shows("DEADLOCK")
        tool.press("1")
        text = tool.shows("the chain closes here")
        begin, title = text.splitlines(), " Longest chain of 2 threads, a circle"
        number = next(i for i, line in enumerate(begin) if line.startswith(title))
        first = begin[number + 1].split()[0]
        assert begin[number + 3].startswith(f"  → {first}: the chain closes here")


def test_the_chain_ends_with_the_call_that_the_details_name(start_target: StartTarget) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    with PtyTool([COMMAND, "-p", str(target.pid)], SIZE) as tool:
        tool.shows("g_index_lock")
        tool.press("1")
        tool.shows("→ indexer now in read(")
        assert "asleep" not in tool.text


def test_a_text_report_lists_a_deadlock_once(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("accounts_deadlock")
    target.expect("ready")
    with PtyTool([COMMAND, "-p", str(target.pid)], SIZE, cwd=tmp_path) as tool:
        tool.shows("DEADLOCK")
        tool.press("W")
        tool.shows("Saved")
    (report,) = tmp_path.glob("*.txt")
    text = report.read_text()
    assert "DEADLOCK: 2 threads wait for each other" in text
    assert "POTENTIAL" not in text


def test_details_scrolled_down_come_back_where_all_lines_fit(start_target: StartTarget) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    with PtyTool([COMMAND, "-p", str(target.pid)], (80, 24)) as tool:
        tool.shows("g_index_lock")
        tool.press("7")
        tool.shows("▶ Details of a lock")
        tool.press("G")
        tool.until(
            lambda text: re.search(r"▶ Details .* \d+-(\d+) of \1 ", text) is not None, "end"
        )
        for height in (40, 50):  # the first shows a part, the second all
            tool.resize(80, height)
            # The last line is at the end of the panel, with no empty row below.
            tool.until(lambda text, height=height: is_filled(text, height), f"{height} rows")


def is_filled(text: str, height: int) -> bool:
    """Return whether the details show all their lines, or as many as there are rows."""
    match = re.search(r"▶ Details of a lock ─+ (?:(\d+)-(\d+) of )?(\d+) ─", text)
    lines = text.splitlines()
    if match is None or len(lines) != height:
        return False
    rows = height - 2 - next(i for i, line in enumerate(lines) if line.startswith("▶"))
    first, last, count = (int(part or 0) for part in match.groups())
    return not first or (last - first + 1 == min(rows, count))
