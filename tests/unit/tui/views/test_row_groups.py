"""Names of groups and of single rows, in the cells of a column."""

from __future__ import annotations

from locktop.tui.views.row_groups import fit_label


def test_a_group_keeps_its_number() -> None:
    assert fit_label("▸ worker-#  84 threads", 40).rstrip() == "▸ worker-#  84 threads"
    assert fit_label("▸ a_very_long_name_of_workers-#  84 threads", 24).endswith(" x84")


def test_an_open_row_without_a_number_keeps_its_name() -> None:
    name = "cond in rocksdb::WriteThread::BlockingAwaitState at 0x7f043b7fadc0"
    assert fit_label(f"▾ {name}", 26) == "▾ cond in r…0x7f043b7fadc0"
