"""The details panel: what it folds, and the room that it has."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import records, scenarios

from locktop.collector.model import Frame, Snapshot

OUTER = tuple(
    Frame(0x7F0000001000, name, None, None, "libc.so.6", 0x89000)
    for name in ("start_thread", "clone3")
)


def deep() -> Snapshot:
    """Stacks that end with two functions of the C library."""
    stacks = {id_: (*frames[:-1], *OUTER) for id_, frames in records.STACKS.items()}
    return replace(scenarios.normal(), stacks=stacks)


async def test_details_on_the_whole_screen_unfold_the_standard_library() -> None:
    async with opened(deep(), size=(80, 24)) as screen:
        await screen.keys("tab", "enter")
        assert "clone3" in screen.text
        assert "frames of the standard library" not in screen.text
        await screen.keys("escape")
        assert "clone3" not in screen.text


async def test_details_beside_the_lists_fold_the_standard_library() -> None:
    async with opened(deep(), size=(200, 60)) as screen:
        await screen.keys("tab", "enter")
        assert "… 2 frames of the standard library" in screen.text
        await screen.keys("enter")
        assert "clone3" in screen.text
