"""From figures to text, from snapshots to lines: no terminal involved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pictures
import pytest
from rich.cells import cell_len

from locktop.collector.model import Blame, Event, Frame, How, Kind, ThreadState, Wait, WaitStack
from locktop.tui.lines import figures, lock_list, thread_list
from locktop.tui.lines.banner import banner
from locktop.tui.lines.deadlock_details import deadlock_details
from locktop.tui.lines.figures import bar, clock, count, duration, exact, fit, percent, size
from locktop.tui.lines.headline import headline
from locktop.tui.lines.lock_details import lock_details
from locktop.tui.lines.order import Ordering, matches
from locktop.tui.lines.parts import latest_events
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.runs import STYLES, changed_cells, cut, line_text, merge, say, wrap
from locktop.tui.lines.shorten import middle, path_in, place_in, without_arguments
from locktop.tui.lines.status import Pace, status_line
from locktop.tui.lines.table import lay_out
from locktop.tui.lines.thread_details import thread_details


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


def test_changed_cells_are_no_more_than_needed_and_leave_out_nothing() -> None:
    old = say("name 線程 12.3ms", ("  held by x", "holder"))
    assert changed_cells(old, old, 40) == 0
    assert changed_cells(say("name 線程 12.4ms", ("  held by x", "holder")), old, 40) == 14
    assert changed_cells(say("name 線路 12.3ms", ("  held by x", "holder")), old, 40) == 9
    assert changed_cells(say("name 線程 12.3ms", ("  held by", "holder")), old, 40) == 27
    assert changed_cells(say("name 線程 12.3ms  held by x"), old, 40) == 40
    assert changed_cells(say("name xx 12.3ms", ("  held by x", "holder")), old, 40) == 27


def test_columns_draw_nearer_before_a_line_is_broken() -> None:
    line = say("  0 ", "cache_get".ljust(28), (" cache.c:42", "where"))
    assert len(wrap(line, 43, 11)) == 1
    assert [line_text(piece) for piece in wrap(line, 30, 11)] == ["  0 cache_get cache.c:42"]
    assert len(wrap(line, 22, 11)) == 2


def test_a_word_is_not_broken_where_its_style_changes() -> None:
    line = say("held by a, taken at ", ("put cache.c:64", "where"), ("; now asleep", "dim"))
    for width in range(16, 46):
        for piece in wrap(line, width, 4):
            assert ":64" not in line_text(piece) or ":64;" in line_text(piece)


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


def test_long_names_in_lists_keep_both_ends() -> None:
    calm = pictures.normal()
    locks = tuple(replace(k, name=f"customer::database::pool_{k.id}_mutex") for k in calm.locks)
    picture = Picture(replace(calm, locks=locks))
    table = lay_out(lock_list.columns(picture), 80)
    assert "*customer::…ol_1_mutex" in line_text(table.line(picture.locks[1], ("*", "waiting")))
    waits = lay_out(thread_list.columns(picture), 80)
    assert "customer…l_1_mutex" in line_text(waits.line(picture.threads[4712]))


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


def test_headline_says_what_was_waited_for_lately_in_the_room_there_is() -> None:
    calm = pictures.normal()
    quiet = Picture(replace(calm, threads=()))
    wide, narrow = (line_text(headline(quiet, width)) for width in (120, 80))
    assert wide.endswith("Most waited for lately: g_cache_lock, 1.88s a second")
    assert narrow == " No thread waits now; lately most for g_cache_lock, 1.88s a second"


def test_headline_of_a_process_that_has_ended_speaks_of_its_end() -> None:
    over = pictures.ended()
    assert "g_table_lock" in line_text(headline(Picture(over), 120)), "what it was stuck on"
    calm = Picture(replace(over, threads=()))
    assert (
        line_text(headline(calm, 80))
        == " The process has ended; this is the last that was seen of it."
    )


def test_every_kind_of_lock_has_room_for_its_name() -> None:
    kinds = next(c for c in lock_list.columns(Picture(pictures.empty())) if c.title == "KIND")
    assert max(len(kind.value) for kind in Kind) <= kinds.width


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


def test_the_banner_tells_behind_from_held_and_itself_from_each_other() -> None:
    stuck = pictures.deadlock()
    whole = stuck.deadlocks[0]
    edges = (replace(whole.cycle[0], how=How.BEHIND), *whole.cycle[1:])
    behind = replace(stuck, deadlocks=(replace(whole, cycle=edges),))
    for width in (80, 200):
        first, second = (line_text(line) for line in banner(Picture(behind), 5, width)[1:3])
        assert "behind" in first
        assert "held by" not in first
        assert "behind" not in second
    for how in How:
        for held_by in (4731, 0):
            edge = replace(whole.cycle[0], how=how, held_by=held_by)
            seen = replace(stuck, deadlocks=(replace(whole, cycle=(edge,)),))
            for width in (80, 200):
                said = line_text(banner(Picture(seen), 5, width)[1])
                assert ("philosopher-1" if held_by else "anybody") in said
                assert ("held by" in said) == (how is How.HELD and width == 200)
    itself = replace(whole.cycle[0], held_by=whole.cycle[0].tid)
    alone = replace(whole, certain=False, doubt="who knows", cycle=(itself,))
    picture = Picture(replace(stuck, deadlocks=(alone,)))
    title = line_text(banner(picture, 5, 120)[0])
    assert "POSSIBLE DEADLOCK for 41.7s: 1 thread waits for itself " in title
    text = [line_text(line) for line in deadlock_details(picture)]
    assert text[0].startswith(" POSSIBLE DEADLOCK: 1 thread waits for itself, for ")
    assert text[1] == " not certain: who knows"


def test_the_banner_tells_all_edges_in_the_same_words() -> None:
    stuck = pictures.deadlock()
    whole = stuck.deadlocks[0]
    shorter = replace(whole, cycle=(replace(whole.cycle[0], site=0), *whole.cycle[1:]))
    picture = Picture(replace(stuck, deadlocks=(shorter,)))
    seen = set()
    for width in range(60, 160):
        texts = [line_text(line) for line in banner(picture, 5, width)[1:]]
        words = {" waits for " in text for text in texts}
        assert len(words) == 1, texts
        seen |= words
    assert seen == {False, True}


def test_banner_has_the_place_of_the_call_where_there_are_no_stacks() -> None:
    stuck = pictures.deadlock()
    cycle = tuple(replace(edge, stack=0) for edge in stuck.deadlocks[0].cycle)
    threads = tuple(
        replace(t, waiting_for=replace(t.waiting_for, stack=0)) if t.waiting_for else t
        for t in stuck.threads
    )
    bare = replace(stuck, deadlocks=(replace(stuck.deadlocks[0], cycle=cycle),), threads=threads)
    for line in banner(Picture(bare), 5, 120)[1:]:
        assert "; at cache_put cache.c:88, taken at take_left ring.c:31" in line_text(line)


def test_banner_shares_the_room_between_a_long_name_and_the_places() -> None:
    stuck = pictures.deadlock()
    locks = tuple(
        replace(k, name=f"customer_database_pool_{k.name}_manager_lock") for k in stuck.locks
    )
    for line in banner(Picture(replace(stuck, locks=locks)), 5, 80)[1:]:
        text = line_text(line)
        assert "wants custome" in text
        assert "_lock of philosopher-" in text
        assert ", at take_right:36" in text


def with_functions(**names: str) -> Picture:
    stuck = pictures.deadlock()
    stacks = {
        k: tuple(replace(f, function=names["at"]) for f in v) for k, v in stuck.stacks.items()
    }
    sites = {k: replace(f, function=names["taken"]) for k, f in stuck.sites.items()}
    return Picture(replace(stuck, stacks=stacks, sites=sites))


@pytest.mark.parametrize("at", ["f", "account_debit_in_a_long_name", "線程" * 30])
@pytest.mark.parametrize("taken", ["g", "store::Map<Key, std::less<Key>>::insert(Key const&)"])
def test_banner_has_thread_lock_and_holder_however_long_the_functions(at: str, taken: str) -> None:
    picture = with_functions(at=at, taken=taken)
    for width in range(60, 140, 4):
        for number, line in enumerate(banner(picture, 5, width)[1:]):
            text = line_text(line)
            assert cell_len(text) <= width
            following = (number + 1) % 3
            for name in (f"philosopher-{number} ", f" fork[{following}]", f"sopher-{following}"):
                assert name in text
            if width >= 80:
                assert ":36" in text
                assert ":31" in text


def test_names_are_shortened_where_they_say_least() -> None:
    assert middle("account_credit", 9) == "acco…edit"
    assert without_arguments("a<b<c>>::d(e, f<g>)") == "a::d"
    assert without_arguments("(anonymous namespace)::run()") == "run"
    assert without_arguments("x::operator->") == "x::operator->"
    for room in range(1, 60):
        for name in ("account", "線程の名前" * 5, "a<b>::cdefghijklmnopqrstuvwxyz()"):
            assert cell_len(place_in(pictures.frame(name, "a.c", 210), room)) <= room


def test_the_name_of_a_file_stays_whole_its_directory_gives_way() -> None:
    path = Path("/var/lib/store/incidents/locktop-store-4711.json")
    assert path_in(path, 60) == str(path)
    assert path_in(path, 40) == "/var/li…ncidents/locktop-store-4711.json"
    assert path_in(path, 26) == "…/locktop-store-4711.json"
    assert path_in(Path("/a.json"), 20) == "/a.json"


def test_status_line_keeps_a_gap_and_leaves_out_from_the_end() -> None:
    snapshot = replace(pictures.normal(), host="vm2")
    whole = line_text(status_line(snapshot, Pace(2.0, 2.0), False, 300)).split("  2/s")[0].rstrip()
    for width in range(40, 160):
        text = line_text(status_line(snapshot, Pace(2.0, 2.0), False, width))
        assert cell_len(text) == width
        assert text.endswith("  2/s ")
        assert whole.startswith(text.removesuffix("2/s ").rstrip())


def test_headline_says_what_the_holder_waits_for_where_that_is_no_lock() -> None:
    calm = pictures.normal()
    text = line_text(headline(Picture(calm), 400))
    picture = Picture(calm)
    (holder,) = [t for t in calm.threads if f"; held by {picture.thread_name(t.tid)} " in text]
    assert holder.waiting_for is None
    slots = replace(calm.locks[0], id=77, kind=Kind.SEM, name="g_slots", holders=(), waiters=())
    waits = replace(holder, waiting_for=Wait(77, Kind.SEM, 1.5, (), 0, 0, 4))
    threads = tuple(waits if thread is holder else thread for thread in calm.threads)
    stuck = Picture(replace(calm, threads=threads, locks=(*calm.locks, slots)))
    assert line_text(headline(stuck, 400)) == f"{text}, which waits for g_slots"


def test_latest_waits_say_how_long_ago_they_were_over() -> None:
    """They are in that order, so the figures are too."""
    picture = Picture(pictures.normal())
    lock, thread = picture.snapshot.locks[0], picture.snapshot.threads[0]

    def event(ago_s: float, wait_s: float, hold_s: float | None) -> Event:
        return Event(thread.tid, lock.id, lock.kind, ago_s, wait_s, hold_s, 0, 0, 0, False)

    long_wait, short_wait = event(10.5, 10.0, 0.25), event(2.0, 1.0, None)
    shown = [line_text(line) for line in latest_events(picture, (long_wait, short_wait), False)]
    assert [text.split(" ago ")[0].strip() for text in shown[2:]] == ["250ms", "1.00s"]


def test_status_line_counts_threads_in_words() -> None:
    whole = pictures.normal()
    one = replace(whole, threads=whole.threads[:1])
    assert "  1 thread  " in line_text(status_line(one, Pace(2.0, 2.0), False, 120))
    assert f"  {len(whole.threads)} threads" in line_text(
        status_line(whole, Pace(2.0, 2.0), False, 120)
    )


def test_status_line_keeps_the_level_where_little_fits() -> None:
    process = replace(pictures.normal().process, comm="locktop-demo", pid=32235)
    calm = replace(pictures.normal(), process=process, level="contended", lost_events=4117)
    for snapshot, pace, paused in (
        (calm, Pace(2.0, 1.0), False),
        (calm, Pace(2.0, 2.0), True),
        (replace(calm, notes=("one",)), Pace(2.0, 2.0), False),
    ):
        assert "  level contended " in line_text(status_line(snapshot, pace, paused, 80))


def details(picture: Picture, lock_id: int) -> str:
    lines = list(lock_details(picture, picture.locks[lock_id]))
    assert {style for line in lines for _, style in line} <= STYLES.keys()
    return "\n".join(line_text(line) for line in lines)


def test_blame_says_what_the_holder_waited_for_itself() -> None:
    calm = pictures.normal()
    because = (Blame(4714, 0x401100, 3.0, through=2), Blame(0, 0x401100, 1.0), Blame(0, 0, 0.5))
    locks = tuple(replace(lock, blame=because if lock.id == 1 else ()) for lock in calm.locks)
    text = details(Picture(replace(calm, locks=locks)), 1)
    assert ", while it waited for " in text
    assert "threads that ended  took it at " in text
    assert "no holder known" in text


def test_the_mean_wait_has_no_wait_that_goes_on_or_gave_up() -> None:
    calm = replace(pictures.normal(), events=())
    assert "310s in all, 376ms each, 4.21s at most" in details(Picture(calm), 2)
    going_on = tuple(
        replace(k, contended=2, wait_s=1.47, wait_max_s=0.11) if k.id == 2 else k
        for k in calm.locks
    )
    assert "1.47s in all, 100ms each, 110ms" in details(Picture(replace(calm, locks=going_on)), 2)
    beyond = tuple(replace(k, wait_max_s=0.001) if k.id == 2 else k for k in calm.locks)
    assert "310s in all, 1.00ms at most" in details(Picture(replace(calm, locks=beyond)), 2)
    gave_up = pictures.normal()
    assert any(event.timed_out for event in gave_up.events)
    assert "in all, 412ms at most" in details(Picture(gave_up), 1)


def test_while_the_library_is_dormant_nought_is_not_known_to_be_nought() -> None:
    threads = tuple(replace(t, waiting_for=None, holds=()) for t in pictures.normal().threads)
    locks = tuple(replace(k, holders=(), waiters=()) for k in pictures.normal().locks)
    calm = replace(pictures.normal(), threads=threads, locks=locks)
    dormant = Picture(replace(calm, level="dormant", complete=False))
    text = details(dormant, 2)
    assert " waiters   not known" in text
    assert " a second  -" in text
    assert " waiters   none" in details(Picture(calm), 2)
    lines = "\n".join(line_text(line) for line in thread_details(dormant, threads[6]))
    assert "pool-0  thread 4720  asleep\n waits for not known\n holds     nothing that" in lines
    assert "lately    lock wait -, idle wait -, cpu 0%" in lines
    lines = "\n".join(line_text(line) for line in thread_details(Picture(calm), threads[6]))
    assert "pool-0  thread 4720  idle\n waits for nothing\n holds     nothing\n" in lines
    assert line_text(headline(dormant, 80)).startswith(" The library is dormant")
    for width in (80, 200):
        woken = line_text(headline(Picture(replace(calm, complete=False)), width))
        assert woken.startswith(" No wait is seen")
    quiet = replace(calm, locks=())
    assert line_text(headline(Picture(quiet), 80)).startswith(" No thread waits for a lock")
    assert "begun while the library was dormant" in line_text(
        headline(Picture(replace(quiet, complete=False)), 80)
    )


def test_a_holder_is_doubted_where_other_threads_give_the_lock_back() -> None:
    calm = pictures.normal()
    assert "not certain" not in details(Picture(calm), 2)
    assert "journal?" not in line_text(headline(Picture(calm), 200))
    locks = tuple(replace(k, foreign_releases=k.id == 2) for k in calm.locks)
    picture = Picture(replace(calm, locks=locks))
    assert "not certain: other threads give it back too" in details(picture, 2)
    assert "not certain" not in details(picture, 1)
    for width in (80, 200):
        assert "held by journal? " in line_text(headline(picture, width))
    assert picture.holders((4716, 4714), 2) == "journal +1?"
    assert picture.holders((4716,), 1) == "journal"


def test_a_hold_without_a_wait_is_not_told_as_a_wait() -> None:
    calm = pictures.normal()
    assert "\n Latest waits\n" in details(Picture(calm), 1)
    (first, *others) = calm.events
    hold = replace(first, wait_s=0.0, hold_s=0.0042, holder=0, stack=0)
    text = details(Picture(replace(calm, events=(hold, *others))), 1)
    assert "\n Latest waits and holds\n" in text
    assert "worker-0 did not wait, held 4.20ms  cache_put cache.c:88" in text
    assert "waited 0" not in text


def test_who_holds_a_lock_is_nobody_only_where_that_is_known() -> None:
    calm = pictures.normal()
    free = replace(calm.locks[0], holders=(), waiters=())
    between = replace(calm.locks[0], holders=())
    for lock, complete, said in (
        (free, True, "nobody"),
        (free, False, "not known"),
        (between, True, "not known"),
    ):
        text = details(Picture(replace(calm, locks=(lock,), complete=complete)), 1)
        assert f"\n held by   {said}\n" in text
    assert "held by" not in details(Picture(calm), 5), "a condition variable is held by nobody ever"


def test_what_nobody_holds_says_how_often_it_was_signalled() -> None:
    calm = pictures.normal()
    text = details(Picture(calm), 5)
    assert "\n signalled 2,504 times  by this process\n" in text
    assert "3.00s waited, 2 signalled" in text
    assert "held" not in text
    never = pictures.lock(5, "g_items", Kind.SEM)
    text = details(Picture(replace(calm, locks=(never,))), 5)
    assert "\n posted    0 times  by this process\n" in text
    assert "0 waited, 0 posted" in text
    text = details(Picture(calm), 1)
    assert "signalled" not in text
    assert "980ms held" in text


def test_a_lock_that_is_never_let_go_of_is_held_all_the_time() -> None:
    lock = replace(pictures.deadlock().locks[0], hold_timed=0)
    columns = {column.title: column for column in lock_list.columns(Picture(pictures.deadlock()))}
    assert columns["HELD%"].cell(lock)[0] == "100%"
    assert columns["HELD%"].cell(pictures.lock(1, "new"))[0] == "-"


def test_lists_name_a_place_by_function_and_line() -> None:
    picture = Picture(pictures.deadlock())
    locks = {column.title: column for column in lock_list.columns(picture)}
    threads = {column.title: column for column in thread_list.columns(picture)}
    assert locks["HELD AT"].cell(picture.locks[10])[0] == "take_left:31"
    assert threads["AT"].cell(picture.threads[4730])[0] == "take_right:36"
    assert threads["AT"].cell(picture.threads[4711])[0] == "cache_put:88"
    assert threads["AT"].cell(picture.threads[4715])[0] == "table::lookup:301"
    assert threads["AT"].cell(picture.threads[4714])[0] == ""


def test_the_first_look_says_nothing_of_what_takes_two() -> None:
    first = Picture(replace(pictures.normal(), interval_s=0.0))
    lock, thread = first.locks[1], first.threads[4712]
    in_list = {column.title: column.cell(lock)[0] for column in lock_list.columns(first)} | {
        column.title: column.cell(thread)[0] for column in thread_list.columns(first)
    }
    for title in ("CONT/s", "WAIT/s", "HELD%", "ACQ/s", "WAIT%", "CPU%"):
        assert in_list[title] == "-"
    assert "\n a second  -" in details(first, 1)
    assert "\n a second  1.81k acquired" in details(Picture(pictures.normal()), 1)
    assert "  cpu -  " in line_text(status_line(first.snapshot, Pace(2.0, 2.0), False, 120))


def test_a_stack_of_waits_that_have_not_ended_is_still_waiting() -> None:
    calm = pictures.normal()
    locks = tuple(
        replace(k, wait_stacks=(WaitStack(5, 0, 70.0),)) if k.id == 2 else k for k in calm.locks
    )
    text = details(Picture(replace(calm, locks=locks)), 2)
    assert "100% of the wait, 70.0s, still waiting" in text


def test_an_inlined_frame_is_marked_and_a_wrapper_is_no_place() -> None:
    calm = pictures.normal()
    gthread = Frame(0x401100, "__gthread_mutex_lock", "gthr-default.h", 749, "x", 0x1100, True)
    frames = (gthread, Frame(0x401100, "put", "cache.cc", 42, "x", 0x1100))
    locks = tuple(
        replace(k, wait_stacks=(WaitStack(9, 1, 70.0),)) if k.id == 2 else k for k in calm.locks
    )
    picture = Picture(replace(calm, locks=locks, stacks={**calm.stacks, 9: frames}))
    text = details(picture, 2)
    assert "__gthread_mutex_lock         gthr-default.h:749 (inlined)\n" in text
    assert "put                          cache.cc:42\n" in text + "\n"
    assert picture.stack_top(9) == "put cache.cc:42"


@pytest.mark.parametrize("many", [1, 3, 11, 1234])
def test_however_many_wait_their_names_stand_apart_from_their_number(many: int) -> None:
    calm = pictures.normal()
    waiters = (4715,) * many
    locks = tuple(replace(k, waiters=waiters) if k.id == 2 else k for k in calm.locks)
    text = details(Picture(replace(calm, locks=locks)), 2)
    assert f"\n waiters   {many}: reader 1.27s to read" in text
    assert (f"and {many - 3} more" in text) == (many > 3)


def test_one_that_sleeps_with_a_lock_is_not_called_idle() -> None:
    calm = pictures.normal()
    threads = tuple(
        replace(t, state=ThreadState.IDLE) if t.name == "journal" else t for t in calm.threads
    )
    picture = Picture(replace(calm, threads=threads))
    assert "; now asleep" in details(picture, 2)
    assert thread_list.state_word(picture, picture.threads[4716]) == "asleep"
    assert thread_list.state_word(picture, picture.threads[4720]) == "idle"


def test_a_join_of_no_known_thread_is_called_that() -> None:
    unknown = replace(pictures.lock(9, "join 0x0", Kind.JOIN), address=0)
    known = pictures.lock(8, "join 0x7f00", Kind.JOIN)
    picture = Picture(pictures.snapshot((), (unknown, known)))
    assert picture.lock_name(9) == "thread join"
    assert picture.lock_name(8) == "join 0x7f00"


def test_headline_names_waits_on_semaphores_where_no_lock_is_waited_for() -> None:
    waits = [
        pictures.thread(
            5000 + i,
            f"t{i}",
            ThreadState.IDLE,
            waiting_for=pictures.wait(1, Kind.SEM, 48.0 - i),
        )
        for i in range(2)
    ]
    text = line_text(headline(Picture(pictures.snapshot(tuple(waits), ())), 80))
    assert text.strip() == (
        "No thread waits for a mutex or rwlock; 2 wait on semaphores, the longest 48.0s."
    )
    assert len(text) <= 80


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
