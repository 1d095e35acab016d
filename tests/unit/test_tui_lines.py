"""From figures to text, from snapshots to lines: no terminal involved."""

from __future__ import annotations

from dataclasses import replace

import pictures
import pytest
from rich.cells import cell_len

from locktop.tui.lines import figures, lock_list, thread_list
from locktop.tui.lines.banner import banner
from locktop.tui.lines.figures import bar, clock, count, duration, exact, fit, percent, size
from locktop.tui.lines.headline import headline
from locktop.tui.lines.order import Ordering, matches
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.runs import cut, line_text, merge, say, wrap
from locktop.tui.lines.table import lay_out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (-1.0, "0"),
        (4e-10, "0ns"),
        (850e-9, "850ns"),
        (0.9996e-6, "1.00us"),
        (1.234e-6, "1.23us"),
        (12.34e-6, "12.3us"),
        (999.4e-6, "999us"),
        (0.9997e-3, "1.00ms"),
        (0.0999, "99.9ms"),
        (0.09996, "100ms"),
        (0.99951, "1.00s"),
        (9.996, "10.0s"),
        (99.96, "100s"),
        (599.4, "599s"),
        (599.6, "10m00s"),
        (754.0, "12m34s"),
        (3599.6, "1h00m"),
        (86_400.0, "1d00h"),
        (8_640_000.0, "100d"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
    assert len(text) <= figures.DURATION_WIDTH


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.001, "<0.01"),
        (0.25, "0.25"),
        (7, "7"),
        (7.5, "7.50"),
        (999, "999"),
        (999.5, "1.00k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_999, "1.00M"),
        (1.5e9, "1.50G"),
        (1e30, ">999P"),
    ],
)
def test_count(number: float, text: str) -> None:
    assert count(number) == text
    assert len(text) <= figures.COUNT_WIDTH


def test_every_magnitude_stays_within_its_column() -> None:
    for exponent in range(-120, 180):
        value = 10 ** (exponent / 12) * 1.0007
        assert len(count(value)) <= figures.COUNT_WIDTH, value
        if value < 8e7:
            assert len(duration(value)) <= figures.DURATION_WIDTH, value


def test_percent_says_neither_nothing_of_a_little_nor_all_of_less() -> None:
    said = [percent(share) for share in (0, 0.001, 0.5, 0.999, 1, 1.2)]
    assert said == ["0%", "<1%", "50%", "99%", "100%", "100%"]


def test_bar_is_as_wide_as_asked_and_shows_a_little() -> None:
    assert bar(0, 6) == "      "
    assert bar(0.01, 6).strip() != ""
    assert bar(1, 6) == bar(7, 6) == "━━━━━━"
    assert all(len(bar(n / 100, 6)) == 6 for n in range(101))


def test_other_figures() -> None:
    assert exact(1_234_567) == "1,234,567"
    assert clock(3725.9) == "01:02:05"
    assert [size(n) for n in (0, 512, 1 << 20, 3 << 30)] == ["0B", "512B", "1.00M", "3.00G"]


@pytest.mark.parametrize(
    "text", ["", "plain", "x" * 50, "線程の名前", "e\u0301" * 30, "\x1b[2J\n\t", "\u202egnp.exe"]
)
def test_fit_is_exactly_as_wide_as_asked_and_printable(text: str) -> None:
    for width in (1, 2, 7, 40):
        fitted = fit(text, width)
        assert cell_len(fitted) == width
        assert fitted.isprintable()


def test_merge_joins_neighbours_and_blanks_take_the_style_before_them() -> None:
    runs = [("a", "text"), ("b", "text"), ("  ", "holder"), ("", "dim"), ("c", "dim")]
    assert merge(runs) == (("ab  ", "text"), ("c", "dim"))


def test_cut_and_wrap_keep_within_the_width_and_wrap_loses_nothing() -> None:
    line = say("one two ", ("three", "strong"), " four-and-a-very-long-word 線程の名前 end")
    for width in range(12, 60):
        assert cell_len(line_text(cut(line, width))) <= width
        pieces = wrap(line, width, 4)
        assert all(cell_len(line_text(piece)) <= width for piece in pieces)
        joined = "".join(line_text(piece) for piece in pieces).replace(" ", "")
        assert joined == line_text(line).replace(" ", "")


@pytest.mark.parametrize("width", range(60, 220, 7))
def test_rows_fill_the_width_exactly_and_stand_under_their_titles(width: int) -> None:
    picture = Picture(pictures.hostile())
    locks = lay_out(lock_list.columns(picture), width)
    threads = lay_out(thread_list.columns(picture), width)
    for lock in picture.locks.values():
        text = line_text(locks.line(lock, lock_list.mark(picture, lock)))
        assert cell_len(text) == cell_len(line_text(locks.heading()))
    for thread in picture.threads.values():
        text = line_text(threads.line(thread, thread_list.mark(picture, thread)))
        assert cell_len(text) == cell_len(line_text(threads.heading()))
    if width >= 80:
        assert cell_len(line_text(locks.heading())) <= width
        assert cell_len(line_text(threads.heading())) <= width


def test_rows_have_few_runs() -> None:
    picture = Picture(pictures.normal())
    table = lay_out(lock_list.columns(picture), 120)
    rows = [table.line(lock, lock_list.mark(picture, lock)) for lock in picture.locks.values()]
    assert max(len(row) for row in rows) <= 8


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_headline_says_less_where_there_is_less_room(width: int) -> None:
    text = line_text(headline(Picture(pictures.normal()), width))
    assert "g_table_lock" in text
    assert "journal" in text
    if width >= 80:
        assert len(text) <= width
        assert "210" in text


def test_headline_without_anything_wrong() -> None:
    assert "No thread waits" in line_text(headline(Picture(pictures.empty()), 80))


def test_banner_has_all_places_of_a_ring_and_is_no_higher_than_asked() -> None:
    picture = Picture(pictures.deadlock())
    assert banner(Picture(pictures.normal()), 5, 120) == ()
    for width in (80, 120):
        lines = [line_text(line) for line in banner(picture, 5, width)]
        assert len(lines) == 4
        assert all(len(line) <= width for line in lines)
        assert all("take_right" in line and "take_left" in line for line in lines[1:])
    short = [line_text(line) for line in banner(picture, 3, 120)]
    assert len(short) == 3
    assert "and 2 more: press d" in short[-1]


def test_chain_ends_in_a_circle() -> None:
    chain = [thread.tid for thread in Picture(pictures.deadlock()).chain(4730)]
    assert chain == [4730, 4731, 4732]


def test_matches_wants_every_word_in_any_case() -> None:
    assert matches("g_cache_lock mutex Worker", "CACHE worker")
    assert not matches("g_cache_lock mutex", "cache worker")
    assert matches("anything", "")


def test_ordering_sorts_when_due_and_keeps_its_place_between() -> None:
    ordering = Ordering(every_s=1.0)
    assert ordering.arrange([1, 2, 3], 0.0, lambda: [3, 2, 1]) == [3, 2, 1]
    assert ordering.arrange([1, 2, 3, 4], 0.5, lambda: [4, 3, 2, 1]) == [3, 2, 1, 4]
    assert ordering.arrange([1, 4], 0.6, lambda: [4, 1]) == [1, 4]
    assert ordering.arrange([1, 4], 1.0, lambda: [4, 1]) == [4, 1]
    ordering.upset()
    assert ordering.arrange([1, 4], 1.1, lambda: [1, 4]) == [1, 4]


def test_threads_of_one_name_are_told_apart() -> None:
    calm = pictures.normal()
    same = tuple(replace(t, name="ThreadPoolForeg") for t in calm.threads[:3])
    picture = Picture(replace(calm, threads=same + calm.threads[3:]))
    assert picture.thread_name(4711) == "ThreadPo:4711"
    assert picture.thread_name(4712) == "ThreadPo:4712"
    assert picture.thread_name(4715) == "reader"
    assert picture.thread_name(99) == "99"
