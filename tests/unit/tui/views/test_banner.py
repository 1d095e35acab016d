"""The banner of a deadlock."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual.geometry import Size
from unit.builders import scenarios

from locktop.collector.model import BlockReason
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.banner import banner, top_lines
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.styled_line import line_text


def test_the_banner_has_all_locations_of_a_ring_within_its_height() -> None:
    index = SnapshotIndex(scenarios.deadlock())
    assert banner(SnapshotIndex(scenarios.normal()), 5, 120) == ()
    for width in (80, 120):
        lines = [line_text(line) for line in banner(index, 5, width)]
        assert len(lines) == 4
        assert all(len(line) <= width for line in lines)
        assert all("take_right" in line and "take_left" in line for line in lines[1:])
    short = [line_text(line) for line in banner(index, 3, 120)]
    assert len(short) == 3
    assert "and 2 more: press d" in short[-1]


HELD = (BlockReason.HELD, BlockReason.PROBABLY_HELD)


def test_the_banner_distinguishes_each_sort_of_edge() -> None:
    stuck = scenarios.deadlock()
    whole = stuck.deadlocks[0]
    edges = (replace(whole.cycle[0], reason=BlockReason.BEHIND), *whole.cycle[1:])
    behind = replace(stuck, deadlocks=(replace(whole, cycle=edges),))
    for width in (80, 200):
        first, second = (line_text(line) for line in banner(SnapshotIndex(behind), 5, width)[1:3])
        assert "behind" in first
        assert "held by" not in first
        assert "behind" not in second
    for how in BlockReason:
        for held_by in (4731, 0):
            edge = replace(whole.cycle[0], reason=how, held_by=held_by)
            seen = replace(stuck, deadlocks=(replace(whole, cycle=(edge,)),))
            for width in (80, 200):
                said = line_text(banner(SnapshotIndex(seen), 5, width)[1])
                assert ("philosopher-1" if held_by else "anybody") in said
                assert ("held by" in said) == (how in HELD and width == 200)
    itself = replace(whole.cycle[0], held_by=whole.cycle[0].tid)
    alone = replace(whole, certain=False, doubt="who knows", cycle=(itself,))
    index = SnapshotIndex(replace(stuck, deadlocks=(alone,)))
    title = line_text(banner(index, 5, 120)[0])
    assert "POSSIBLE DEADLOCK for 41.7s: 1 thread waits for itself " in title
    text = [line_text(line) for line in deadlock_details(index)]
    assert text[0].startswith(" POSSIBLE DEADLOCK: 1 thread waits for itself, for ")
    assert text[1] == " not certain: who knows"


def test_the_banner_has_one_form_for_all_edges() -> None:
    stuck = scenarios.deadlock()
    whole = stuck.deadlocks[0]
    shorter = replace(whole, cycle=(replace(whole.cycle[0], site=0), *whole.cycle[1:]))
    index = SnapshotIndex(replace(stuck, deadlocks=(shorter,)))
    seen = set()
    for width in range(60, 160):
        texts = [line_text(line) for line in banner(index, 5, width)[1:]]
        words = {" waits for " in text for text in texts}
        assert len(words) == 1, texts
        seen |= words
    assert seen == {False, True}


def test_the_banner_has_the_call_site_without_stacks() -> None:
    stuck = scenarios.deadlock()
    cycle = tuple(replace(edge, stack=0) for edge in stuck.deadlocks[0].cycle)
    threads = tuple(
        replace(t, waiting_for=replace(t.waiting_for, stack=0)) if t.waiting_for else t
        for t in stuck.threads
    )
    without_stacks = replace(
        stuck, deadlocks=(replace(stuck.deadlocks[0], cycle=cycle),), threads=threads
    )
    for line in banner(SnapshotIndex(without_stacks), 5, 120)[1:]:
        assert "; at cache_put cache.c:88, taken at take_left ring.c:31" in line_text(line)


def test_the_banner_divides_its_width_between_a_long_name_and_locations() -> None:
    stuck = scenarios.deadlock()
    locks = tuple(
        replace(k, name=f"customer_database_pool_{k.name}_manager_lock") for k in stuck.locks
    )
    for line in banner(SnapshotIndex(replace(stuck, locks=locks)), 5, 80)[1:]:
        text = line_text(line)
        assert "wants …" in text
        assert "_manager_lock of philosopher-" in text
        assert text.endswith("at take_right:36")


_CUT_IN_THE_MIDDLE = re.compile(r"\w…\w")


def with_functions(**names: str) -> SnapshotIndex:
    stuck = scenarios.deadlock()
    stacks = {
        k: tuple(replace(f, function=names["at"]) for f in v) for k, v in stuck.stacks.items()
    }
    sites = {k: replace(f, function=names["taken"]) for k, f in stuck.sites.items()}
    return SnapshotIndex(replace(stuck, stacks=stacks, sites=sites))


@pytest.mark.parametrize("at", ["f", "account_debit_in_a_long_name", "線程" * 30])
@pytest.mark.parametrize("taken", ["g", "store::Map<Key, std::less<Key>>::insert(Key const&)"])
def test_the_banner_has_thread_lock_and_holder_beside_long_functions(at: str, taken: str) -> None:
    index = with_functions(at=at, taken=taken)
    for width in range(60, 140, 4):
        for number, line in enumerate(banner(index, 5, width)[1:]):
            text = line_text(line)
            assert cell_len(text) <= width
            following = (number + 1) % 3
            for name in (f"philosopher-{number} ", f" fork[{following}]", f"sopher-{following}"):
                assert name in text
            assert not _CUT_IN_THE_MIDDLE.search(text)
            if width >= 80:
                assert ":36" in text
            if width >= 136:
                assert ":31" in text


def test_the_banner_of_a_core_says_so_and_tells_no_time() -> None:
    about = "core of orders 4711, signal 6, taken at 2026-11-21T10:00:00.000Z"
    snapshot = replace(scenarios.normal(), source="core", notes=(about,))
    lines = [line_text(line) for line in top_lines(SnapshotIndex(snapshot), "", Size(120, 40))]
    assert lines[0].strip() == f"CORE  {about}"
    deadlocked = replace(scenarios.deadlock(), source="core", notes=(about,))
    lines = [line_text(line) for line in top_lines(SnapshotIndex(deadlocked), "", Size(120, 40))]
    assert lines[1].startswith(" !! DEADLOCK: ")
