"""Lines of styled spans: merged, cut, wrapped, compared; and shortened names."""

from __future__ import annotations

from rich.cells import cell_len
from unit.builders import records

from locktop.tui.views.shorten import location_in, middle, strip_arguments
from locktop.tui.views.styled_line import (
    FoldedLines,
    changed_cells,
    cut,
    line_text,
    make_line,
    merge,
    unfolded,
    wrap,
)


def test_merge_joins_adjacent_spans_and_blanks_take_the_style_before_them() -> None:
    spans = [("a", "text"), ("b", "text"), ("  ", "holder"), ("", "dim"), ("c", "dim")]
    assert merge(spans) == (("ab  ", "text"), ("c", "dim"))


def test_cut_and_wrap_respect_the_width_and_wrap_keeps_all_text() -> None:
    line = make_line("one two ", ("three", "strong"), " four-and-a-very-long-word 線程の名前 end")
    for width in range(12, 60):
        assert cell_len(line_text(cut(line, width))) <= width
        pieces = wrap(line, width, 4)
        assert all(cell_len(line_text(piece)) <= width for piece in pieces)
        joined = "".join(line_text(piece) for piece in pieces).replace(" ", "")
        assert joined == line_text(line).replace(" ", "")


def test_changed_cells_are_exact() -> None:
    old = make_line("name 線程 12.3ms", ("  held by x", "holder"))
    assert changed_cells(old, old, 40) == 0
    assert changed_cells(make_line("name 線程 12.4ms", ("  held by x", "holder")), old, 40) == 14
    assert changed_cells(make_line("name 線路 12.3ms", ("  held by x", "holder")), old, 40) == 9
    assert changed_cells(make_line("name 線程 12.3ms", ("  held by", "holder")), old, 40) == 27
    assert changed_cells(make_line("name 線程 12.3ms  held by x"), old, 40) == 40
    assert changed_cells(make_line("name xx 12.3ms", ("  held by x", "holder")), old, 40) == 27


def test_columns_move_together_before_a_line_breaks() -> None:
    line = make_line("  0 ", "cache_get".ljust(28), (" cache.c:42", "where"))
    assert len(wrap(line, 43, 11)) == 1
    assert [line_text(piece) for piece in wrap(line, 30, 11)] == ["  0 cache_get cache.c:42"]
    assert len(wrap(line, 22, 11)) == 2


def test_a_change_of_style_breaks_no_word() -> None:
    line = make_line("held by a, taken at ", ("put cache.c:64", "where"), ("; now asleep", "dim"))
    for width in range(16, 46):
        for piece in wrap(line, width, 4):
            assert ":64" not in line_text(piece) or ":64;" in line_text(piece)


def test_names_are_shortened_in_their_least_telling_part() -> None:
    assert middle("account_credit", 9) == "ac…credit"
    assert strip_arguments("a<b<c>>::d(e, f<g>)") == "a::d"
    assert strip_arguments("(anonymous namespace)::run()") == "run"
    assert strip_arguments("x::operator->") == "x::operator->"
    for room in range(1, 60):
        for name in ("account", "線程の名前" * 5, "a<b>::cdefghijklmnopqrstuvwxyz()"):
            assert cell_len(location_in(records.frame(name, "a.c", 210), room)) <= room


def test_folded_lines_are_one_line_or_the_lines_inside() -> None:
    folded = FoldedLines(make_line("… 2 lines"), [make_line("one"), make_line("two")])
    lines = [make_line("zero"), folded]
    assert [line_text(line) for line in lines] == ["zero", "… 2 lines"]
    assert [line_text(line) for line in unfolded(lines)] == ["zero", "one", "two"]
