"""The lines of the profiles that a program makes of its own code."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.profiles import text_report as text
from locktop.collector.extensions.profiles import words
from locktop.collector.extensions.profiles.model import SelfProfile
from locktop.collector.extensions.profiles.profile_listing import Listing
from locktop.tui.views.cells import exact, fit_right
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column


def profile_columns() -> tuple[Column[SelfProfile], ...]:
    """The columns of the list of profiles."""
    return (
        Column("NO", 3, lambda profile: (str(profile.number), "dim"), fitting=fit_right),
        Column(
            "NAME", 12, lambda profile: (words.profile_name(profile), "strong"), grow=1, limit=47
        ),
        Column("SOURCE", 10, lambda profile: (profile.source, "text"), grow=1, limit=19),
        Column("INTERVAL", 9, lambda profile: (words.interval(profile), "text"), fitting=fit_right),
        Column("STATE", 8, _state),
        Column("SAMPLES", 8, lambda profile: (exact(profile.samples), "text"), fitting=fit_right),
        Column("TOTAL", 9, _total, fitting=fit_right, from_width=90),
        Column("REGIONS", 12, lambda profile: (words.region_names(profile), "where"), grow=2),
    )


def _state(profile: SelfProfile) -> Cell:
    return profile.state, "running" if profile.state == "running" else "dim"


def _total(profile: SelfProfile) -> Cell:
    return words.total(profile, profile.samples), "text"


def listing_lines(listing: Listing, width: int) -> Iterator[Line]:
    """The totals and the buckets of one profile, or of two beside each other."""
    marks = ("A  ", "B  ") if listing.is_contrast else ("",)
    for mark, kept in zip(marks, listing.profiles, strict=True):
        for line in text.heads(kept, mark):
            yield make_line(line)
    if listing.is_contrast:
        yield make_line((text.ratio(listing), "strong"))
        yield make_line((text.difference(listing), "waiting"))
    for number, row in enumerate(text.rows(listing, width)):
        yield make_line((row, "label")) if not number else make_line(row)
    for note in listing.notes:
        yield make_line((note, "dim"))
